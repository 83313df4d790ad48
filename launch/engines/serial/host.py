"""What a supervisor and a monitor do for processes, done by a serial run for itself.

It writes metrics and TensorBoard events, shows the run, says in status.json how it is, and hears
that it is to stop: by a signal, by `vantage stop`, or because its folder is gone.
"""

import os
import time
from collections.abc import Callable

from launch.config import Config
from launch.machine.host_name import this_host
from launch.monitor.display import RunDisplay
from launch.monitor.events import EventWriter
from launch.monitor.loop import PERIOD_SECONDS, Sinks
from launch.monitor.run_phase import PhaseClock, RunPhase
from launch.monitor.view import make_view
from launch.node_status import NodeStatus
from launch.run_dir import RunDir
from launch.supervise.status_file import StatusWriter
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome
from launch.terminal import make_console, say
from report.metrics_file import MetricsFile, Row


class SerialHost:
    """The run's own process, looked after between two steps of its games."""

    def __init__(
        self,
        config: Config,
        run_dir: RunDir,
        stop: StopSignals,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._run_dir, self._stop, self._clock = run_dir, stop, clock
        metrics, self._events = MetricsFile(run_dir.metrics_file), EventWriter(run_dir.root)
        self._sinks = Sinks(
            {
                str(metrics.path): metrics.append,
                f"TensorBoard events in {self._events.path}": self._events.append,
            }
        )
        self._display = RunDisplay(config, run_dir, make_view(make_console()))
        self._phase_of = PhaseClock(clock)
        self._phase = RunPhase("starting")
        self._status = StatusWriter(run_dir.status_file, self._say_of_status)
        self._rows: list[Row] = []
        self._due_at = clock()
        self.asked: Outcome | None = None  # the end that was asked for

    def record(self, row: Row) -> None:
        """Takes a row, for all who want it."""
        self._rows.append(row)

    def tick(self, name: str, extent: str = "") -> bool:
        """Told often which phase the run is in; returns whether it is to stop."""
        is_new = name != self._phase.name
        self._phase = self._phase_of(name, extent)
        if is_new or self._clock() >= self._due_at:
            self._due_at = self._clock() + PERIOD_SECONDS
            self._look_after()
        return self.asked is not None

    def close(self, outcome: Outcome) -> None:
        """Writes and shows what is left."""
        self._sinks.write(self._rows, is_last=True)
        self._rows = []
        self._sinks.report_losses()
        self._events.close()
        self._display.show(self._phase)
        self._display.close()
        self._write_status(outcome.value)

    def abandon(self) -> None:
        """Leaves everything as it is, in the middle of whatever the run was doing."""
        self._write_status(Outcome.KILLED.value)
        self._display.close()

    def _look_after(self) -> None:
        self._sinks.write(self._rows, is_last=False)
        self._rows = []
        self._display.show(self._phase)
        self.asked = self.asked or self._end_asked()
        self._write_status("running" if self.asked is None else "stopping")

    def _end_asked(self) -> Outcome | None:
        if not self._run_dir.is_there():
            say(f"run directory '{self._run_dir.root}' is gone: the run cannot be saved, and stops")
            return Outcome.LOST
        stops = self._stop.requested or self._run_dir.stop_file.exists()
        return Outcome.STOPPED if stops else None

    def _write_status(self, state: str) -> None:
        is_up = state in ("running", "stopping")
        node = NodeStatus(
            role="serial",
            index=0,
            host=this_host(),
            pid=os.getpid() if is_up else None,
            state=state,
            progress=str(self._phase) if is_up else None,
            progress_age_seconds=0.0 if is_up else None,
        )
        self._status.write(state, [node])

    def _say_of_status(self, problem: str) -> None:
        if self.asked is not Outcome.LOST:  # which has been said
            say(problem)
