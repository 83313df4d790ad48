"""A snapshot as a line of a log: for pipes, files and batch jobs."""

import sys
from typing import IO

from launch.monitor.snapshot import Snapshot
from launch.monitor.units import UNKNOWN, format_count
from report.duration import duration_text

_PERIOD_SECONDS = 10.0


class PlainView:
    """A line at most every ten seconds of row time."""

    def __init__(self, file: IO[str] | None = None):
        self._file = file
        self._printed_time: float | None = None
        self._unprinted: Snapshot | None = None

    def update(self, snapshot: Snapshot) -> None:
        """Prints the snapshot if a line is due."""
        if snapshot.time is None:
            return
        self._unprinted = snapshot
        if self._printed_time is None or snapshot.time - self._printed_time >= _PERIOD_SECONDS:
            self._print(snapshot)

    def close(self) -> None:
        """Prints the final state if it has not been printed yet."""
        if self._unprinted is not None and self._unprinted.time != self._printed_time:
            self._print(self._unprinted)

    def _print(self, snapshot: Snapshot) -> None:
        file = sys.stdout if self._file is None else self._file
        # Set first: if printing fails, close() must not fail on the same line again.
        self._printed_time = snapshot.time
        print(format_line(snapshot), file=file, flush=True)


def format_line(snapshot: Snapshot) -> str:
    """The state of the run in one line; what has not been reported is left out."""
    evaluation = None if snapshot.evaluation is None else snapshot.evaluation.mean_return
    parts = (
        (snapshot.frames_per_second, "{:,.0f} frames/s"),
        (snapshot.updates_per_second, "{:,.1f} updates/s"),
        (snapshot.loss, "loss {:.4g}"),
        (snapshot.mean_return, "return {:,.1f}"),
        (evaluation, "eval {:,.1f}"),
        (snapshot.samples_per_insert, "samples/insert {:.2f}"),
    )
    reported = [text.format(value) for value, text in parts if value is not None]
    return " | ".join([progress_text(snapshot), *reported])


def progress_text(snapshot: Snapshot) -> str:
    """How far the run is, and when it will be done."""
    percent = 100.0 * snapshot.frames / snapshot.total_frames
    eta = UNKNOWN if snapshot.eta_seconds is None else duration_text(snapshot.eta_seconds)
    return (
        f"{format_count(snapshot.frames)}/{format_count(snapshot.total_frames)} "
        f"frames {percent:.1f}% ETA {eta}"
    )
