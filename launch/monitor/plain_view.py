"""A snapshot as a line of a log: for pipes, files and batch jobs."""

import sys
from typing import IO

from launch.monitor.run_phase import RunPhase
from launch.monitor.snapshot import Snapshot
from launch.monitor.units import format_count
from report.duration import duration_text

_PERIOD_SECONDS = 10.0


class PlainView:
    """A line for each phase, and one at most every ten seconds of it, or of row time."""

    def __init__(self, file: IO[str] | None = None):
        self._file = file
        self._printed_phase: RunPhase | None = None
        self._printed_time: float | None = None
        self._unprinted: Snapshot | None = None

    def update(self, snapshot: Snapshot) -> None:
        """Prints the snapshot, or the phase it is in, if a line is due."""
        if snapshot.phase is not None:
            self._update_phase(snapshot.phase)
        if snapshot.time is None:
            return
        self._unprinted = snapshot
        if snapshot.phase is not None and not snapshot.phase.trains:
            return
        if self._printed_time is None or snapshot.time - self._printed_time >= _PERIOD_SECONDS:
            self._print(snapshot)

    def _update_phase(self, phase: RunPhase) -> None:
        before = self._printed_phase
        entered = before is None or phase.name != before.name
        if before is None or entered or _is_due(phase, before):
            self._printed_phase = phase
            print(phase, file=self._output, flush=True)

    def close(self) -> None:
        """Prints the final state if it has not been printed yet."""
        if self._unprinted is not None and self._unprinted.time != self._printed_time:
            self._print(self._unprinted)

    def _print(self, snapshot: Snapshot) -> None:
        # Set first: if printing fails, close() must not fail on the same line again.
        self._printed_time = snapshot.time
        print(format_line(snapshot), file=self._output, flush=True)

    @property
    def _output(self) -> IO[str]:
        return sys.stdout if self._file is None else self._file


def _is_due(phase: RunPhase, printed: RunPhase) -> bool:
    """Whether a phase that goes on is worth another line; training has lines of its own."""
    return not phase.trains and phase.seconds - printed.seconds >= _PERIOD_SECONDS


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
    """How far the run is, and when it will be done, if that can be told."""
    percent = 100.0 * snapshot.frames / snapshot.total_frames
    frames = f"{format_count(snapshot.frames)}/{format_count(snapshot.total_frames)} frames"
    eta = f" ETA {duration_text(snapshot.eta_seconds)}" if snapshot.eta_seconds else ""
    return f"{frames} {percent:.1f}%{eta}"
