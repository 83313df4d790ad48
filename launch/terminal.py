"""Where text meets a terminal: whatever it says, no terminal obeys it.

Also where output meets a pipe or a full disk: `vantage status RUN | head -1` must not end in a
traceback, nor a run because nobody can read what it says. Standard library only.
"""

import io
import sys
import typing
from typing import Any, TextIO

from report.plain_text import plain

if typing.TYPE_CHECKING:
    from rich.console import Console


def say(message: str) -> None:
    """Prints a line at once; a live view lets it scroll by above itself."""
    print(plain(message), flush=True)


def warn(message: str) -> None:
    """One line on stderr, of a command that goes on without something."""
    print(f"vantage: warning: {plain(message)}", file=sys.stderr)


def complain(message: str) -> None:
    """One line on stderr, of a command that does not go on."""
    print(f"vantage: error: {plain(message)}", file=sys.stderr)


def make_console() -> "Console":
    """For tables and live views: texts are shown as they are, brackets and colons mean nothing."""
    from rich.console import Console

    return Console(markup=False, emoji=False)


def outlive_readers() -> None:
    """Makes stdout and stderr of this process go on when they can no longer be written."""
    sys.stdout, sys.stderr = _outliving(sys.stdout), _outliving(sys.stderr)


def lost_output() -> str | None:
    """Why something that was said is lost; None if all of it arrived, or nobody was there."""
    lost = None
    for stream in (sys.stdout, sys.stderr):
        output = getattr(getattr(stream, "buffer", None), "raw", None)
        if isinstance(output, _Output):
            stream.flush()
            lost = lost or output.lost
    return lost


class _Output(io.FileIO):
    """An open file or pipe that never fails: what cannot be written is dropped."""

    lost: str | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            pass  # the reader has seen enough
        except OSError as error:
            self.lost = error.strerror
        return memoryview(data).nbytes


def _outliving(stream: TextIO | None) -> Any:
    if stream is None:  # closed by whoever started us; then print says nothing
        return None
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        # A name that the terminal's encoding does not have is no reason to fail.
        errors="replace" if stream.errors == "strict" else stream.errors,
        line_buffering=stream.isatty() or stream is sys.stderr,
    )
