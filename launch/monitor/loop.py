"""The monitor's loop: drain telemetry rows and write them to every sink, until stopped.

Training never waits for the monitor, so the monitor never gives up on training: a sink that
cannot be written (a full disk) is reported on stderr with its path and reason, the
other sinks go on, and the failed one is tried again later. Rows that it missed are counted, and the
count is reported when it works again or the monitor ends.
"""

import sys
from collections.abc import Callable, Mapping

from report.metrics_file import Row, fault_of, recordable
from report.plain_text import plain

PERIOD_SECONDS = 1.0
# The pause before a failed sink is tried again doubles from the first to the last.
_FIRST_RETRY_PASSES = 10
_LAST_RETRY_PASSES = 320
_SHOWN = 200  # characters of a faulty row
_MAX_REPORTED = 20  # kinds of faults: a stranger can think of any number of them


def run_monitor(
    *,
    drain: Callable[[], list[Row]],
    should_stop: Callable[[float], bool],
    sinks: Mapping[str, Callable[[list[Row]], None]],
) -> None:
    """Runs until `should_stop(seconds)`, which waits that long at most, returns True.

    `drain` returns the rows that have arrived since it was last called, and does not wait for more.
    `sinks` write them, by the names that messages call them by. After the stop, what is left is
    drained once more. An exception from `drain` ends the monitor.
    """
    written = Sinks(sinks)
    try:
        written.write(drain(), is_last=False)
        while not should_stop(PERIOD_SECONDS):
            written.write(drain(), is_last=False)
        written.write(drain(), is_last=True)
    finally:
        written.report_losses()


class Sinks:
    """All destinations of a run's rows; none of them costs another a row."""

    def __init__(self, sinks: Mapping[str, Callable[[list[Row]], None]]):
        self._check = _RowCheck()
        self._sinks = [_Sink(name, write_fn) for name, write_fn in sinks.items()]

    def write(self, rows: list[Row], *, is_last: bool) -> None:
        """One pass, every PERIOD_SECONDS: the rows since the last one, to whoever takes them."""
        good = self._check(rows)
        for sink in self._sinks:
            sink.write(good, is_last=is_last)

    def report_losses(self) -> None:
        """Says at the end what was not written."""
        self._check.report_losses()
        for sink in self._sinks:
            sink.report_losses()


class _Sink:
    """One destination that may fail with OSError, and recover; rows not written are counted."""

    def __init__(self, name: str, write_fn: Callable[[list[Row]], None]):
        self._name = name
        self._write_fn = write_fn
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
        return f", up to {self._num_lost} rows lost"


class _RowCheck:
    """Lets only rows through that every sink can take, and as every sink can take them.

    One faulty sender must not cost the rows of all others, so its rows are dropped, not raised on.
    The first of each kind is reported when it comes, up to a limit; their number at the end.
    """

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._num_dropped = 0

    def __call__(self, rows: list[Row]) -> list[Row]:
        good = []
        for row in rows:
            fault = fault_of(row)
            if fault is None:
                good.append(recordable(row))
                continue
            self._num_dropped += 1
            if fault not in self._reported and len(self._reported) < _MAX_REPORTED:
                self._reported.add(fault)
                _report(f"dropping rows with {fault}, such as {plain(repr(row), limit=_SHOWN)}")
        return good

    def report_losses(self) -> None:
        if self._num_dropped:
            _report(f"dropped {self._num_dropped} faulty rows in all")


def _report(message: str) -> None:
    print(f"monitor: {message}", file=sys.stderr, flush=True)
