"""The monitor's loop: drain telemetry rows, write every sink, update the view, until stopped.

Training never waits for the monitor, so the monitor never gives up on training: a sink that
cannot be written (a full disk, a closed pipe) is reported on stderr with its path and reason, the
other sinks go on, and the failed one is tried again later. Rows that it missed are counted, and the
count is reported when it works again or the monitor ends.
"""

from __future__ import annotations

import functools
import math
import numbers
import sys
from collections.abc import Callable

from launch.monitor.events import EventWriter
from launch.monitor.snapshot import RunView
from launch.monitor.terminal import View
from report.metrics_file import MetricsFile, Row, is_metric

# The pause before a failed sink is tried again doubles from the first to the last.
_FIRST_RETRY_PASSES = 10
_LAST_RETRY_PASSES = 320


def run_monitor(
    *,
    drain: Callable[[], list[Row]],
    should_stop: Callable[[float], bool],
    metrics: MetricsFile,
    events: EventWriter | None,
    view: View | None,
    state: RunView | None = None,
    period_seconds: float = 1.0,
) -> None:
    """Runs until `should_stop(seconds)`, which waits that long at most, returns True.

    `drain` returns the rows that have arrived since it was last called, and does not wait for more.
    `state` is what the view shows: pass one that knows the frames to come and the target ratio, or
    that has seen the rows of an earlier session. After the stop, what is left is drained once more.
    An exception from `drain` ends the monitor, with its sinks closed.
    """
    state = RunView() if state is None else state
    checked = _RowCheck()
    sinks = [_Sink(str(metrics.path), metrics.append)]
    if events is not None:
        sinks.append(_Sink(f"TensorBoard events in {events.path}", events.append))
    if view is not None:
        show = functools.partial(_show, view, state)
        sinks.append(_Sink("the terminal view", show, keeps_rows=False))

    def run_pass(*, is_last: bool) -> None:
        rows = checked(drain())
        state.add(rows)
        for sink in sinks:
            sink.write(rows, is_last=is_last)

    try:
        run_pass(is_last=False)
        while not should_stop(period_seconds):
            run_pass(is_last=False)
        run_pass(is_last=True)
    finally:
        checked.report_losses()
        for sink in sinks:
            sink.report_losses()
        _close(events=events, view=view)


def _show(view: View, state: RunView, rows: list[Row]) -> None:
    del rows  # The state has them already, and time for a view passes without rows too.
    view.update(state.snapshot())


class _Sink:
    """One destination that may fail with OSError, and recover.

    With `keeps_rows`, rows that are not written are lost and counted; a view only shows the state.
    """

    def __init__(
        self, name: str, write_fn: Callable[[list[Row]], None], *, keeps_rows: bool = True
    ):
        self._name = name
        self._write_fn = write_fn
        self._keeps_rows = keeps_rows
        self._failing = False
        self._num_lost = 0
        self._retry_passes = _FIRST_RETRY_PASSES
        self._passes_to_retry = 0

    def write(self, rows: list[Row], *, is_last: bool) -> None:
        """Writes the rows, or counts them as lost while the sink is failing."""
        if self._failing and not is_last:
            self._passes_to_retry -= 1
            # Without rows a try proves nothing.
            if self._passes_to_retry > 0 or not rows:
                self._num_lost += len(rows)
                return
        try:
            self._write_fn(rows)
        except OSError as error:
            self._fail(error, len(rows))
        else:
            self._recover()

    def report_losses(self) -> None:
        """Says at the end what a sink missed that has not recovered."""
        if self._failing:
            _report(f"{self._name}: still failing at the end{self._losses()}")

    def _fail(self, error: OSError, num_rows: int) -> None:
        if not self._failing:
            reason = error.strerror or str(error)
            _report(f"cannot write {self._name}: {reason}; will try again")
        self._failing = True
        self._num_lost += num_rows
        self._passes_to_retry = self._retry_passes
        self._retry_passes = min(2 * self._retry_passes, _LAST_RETRY_PASSES)

    def _recover(self) -> None:
        if self._failing:
            _report(f"{self._name}: written again{self._losses()}")
        self._failing = False
        self._num_lost = 0
        self._retry_passes = _FIRST_RETRY_PASSES

    def _losses(self) -> str:
        # "Up to": of a batch that failed, the first rows may have been written.
        return f", up to {self._num_lost} rows lost" if self._keeps_rows else ""


class _RowCheck:
    """Lets only rows through that every sink can take.

    One faulty sender must not cost the rows of all others, so its rows are dropped, not raised on.
    The first of each kind is reported when it comes, their number at the end.
    """

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._num_dropped = 0

    def __call__(self, rows: list[Row]) -> list[Row]:
        good = []
        for row in rows:
            fault = _fault(row)
            if fault is None:
                good.append(row)
                continue
            self._num_dropped += 1
            if fault not in self._reported:
                self._reported.add(fault)
                _report(f"dropping rows with {fault}, such as {row!r}")
        return good

    def report_losses(self) -> None:
        if self._num_dropped:
            _report(f"dropped {self._num_dropped} faulty rows in all")


def _fault(row: Row) -> str | None:
    """Why a row cannot be recorded, or None."""
    if not isinstance(row.get("role"), str):
        return "no text as 'role'"
    for key in ("time", "frames"):
        value = row.get(key)
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            return f"no finite number as {key!r}"
    for key, value in row.items():
        if not is_metric(value):
            return f"neither a number nor a text as {key!r}"
    return None


def _close(*, events: EventWriter | None, view: View | None) -> None:
    for name, closable in (("TensorBoard events", events), ("the terminal view", view)):
        if closable is None:
            continue
        try:
            closable.close()
        except OSError as error:
            _report(f"cannot close {name}: {error.strerror or error}")


def _report(message: str) -> None:
    print(f"monitor: {message}", file=sys.stderr, flush=True)
