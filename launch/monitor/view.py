"""Which view a run is shown by: live on a terminal, plain lines in a log.

Views do not look at the clock: they change when they are given a snapshot, and then only.
"""

from typing import Protocol

from rich.console import Console

from launch.monitor.live_view import LiveView
from launch.monitor.plain_view import PlainView
from launch.monitor.snapshot import Snapshot


class View(Protocol):
    """Shows snapshots until it is closed."""

    def update(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


def make_view(console: Console) -> View:
    """The live view on a terminal, plain lines anywhere else (a pipe, a file, a batch job)."""
    return LiveView(console) if can_redraw(console) else PlainView(console.file)


def can_redraw(console: Console) -> bool:
    """Whether there is a terminal to draw on in place."""
    # Not console.is_terminal: FORCE_COLOR turns that on for logs, where a live view is noise.
    return console.file.isatty() and not console.is_dumb_terminal
