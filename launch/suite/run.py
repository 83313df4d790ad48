"""`vantage suite`: runs the grid, some at a time, each in a process of its own or as a job.

Started again, the same command skips the runs that are done and continues the others. A run that
fails does not stop the rest. Ctrl-C once stops the runs under way in order, twice kills them.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console

from launch.config import Config
from launch.engines.options import SlurmOptions
from launch.engines.record import new_run_id
from launch.engines.slurm.submit import check_options
from launch.errors import ExitCode, InputError
from launch.monitor.follow import TAIL_BYTES, MetricsFollower, recent_rows
from launch.run_dir import RunDir, write_atomically
from launch.suite.plan import PlannedRun, SuiteRequest, plan_suite, train_command
from launch.suite.slurm import check_suite, queue_suite, queued_tasks
from launch.suite.view import Cell, SuiteState, SuiteView
from launch.supervise.log_file import last_line
from launch.supervise.node_process import die_with_parent
from launch.supervise.status_file import read_status
from launch.supervise.stop_signals import StopSignals
from report.duration import duration_text
from report.metrics_file import Row

SUITE_FILE = "suite.json"
_POLL_SECONDS = 0.5


def suite(
    request: SuiteRequest,
    slurm: SlurmOptions,
    extra_args: Sequence[str],
    parse: Callable[[Sequence[str]], Config],
) -> ExitCode:
    """Runs what is not done yet; fails if a run failed."""
    planned = plan_suite(request, extra_args, parse)
    if request.engine == "slurm":
        return _suite_on_slurm(request, slurm, planned)
    _prepare(request.out, planned)
    view = SuiteView(Console())
    runs = [_Run(run, request.out / "logs" / f"{run.name}.log") for run in planned]
    _say_what_is_there(runs, request.out, view.say)
    try:
        stop = _run_all(runs, request.parallel or 1, view)
    finally:
        view.close()
    return _conclude(runs, stop, out=request.out)


def _suite_on_slurm(
    request: SuiteRequest, slurm: SlurmOptions, planned: Sequence[PlannedRun]
) -> ExitCode:
    # Relative paths mean nothing on another host.
    out = request.out.absolute()
    check_options(slurm)
    check_suite(slurm, planned, out)
    known = _prepare(out, planned)
    # Looked up first: what ends in between is then found done, and not queued again.
    queued = queued_tasks(known.suite_id)
    left = [run for run in planned if not is_finished(run.run_dir, run.config)]
    print(f"{len(planned)} runs in {out}: {len(planned) - len(left)} done")
    # A run keeps its number when the suite grows, so that it is found in the queue.
    tasks = {known.runs.index(run.name): run for run in left}
    return queue_suite(slurm, known.suite_id, tasks, queued, out=out, parallel=request.parallel)


class _Run:
    """A planned run, and its process while there is one."""

    def __init__(self, planned: PlannedRun, log_file: pathlib.Path):
        self.planned, self.log_file = planned, log_file
        self.frames = 0
        self.problem = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._follower: MetricsFollower | None = None
        self._add(_tail(planned.run_dir))
        self.frames_before = self.frames
        status = read_status(planned.run_dir)
        if is_finished(planned.run_dir, planned.config):
            self.state = "done"
        elif status is not None and status.alive:
            self.state = "elsewhere"
            self.problem = f"already running on {status.host} (pid {status.pid})"
        else:
            self.state = "waiting"

    @property
    def fraction(self) -> float:
        if self.state == "done":
            return 1.0
        return min(self.frames / self.planned.config.frames, 1.0)

    def start(self) -> None:
        """Its output goes to its log, over all attempts."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                train_command(self.planned),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Its own session: Ctrl-C reaches the suite alone, which passes it on.
                start_new_session=True,
                preexec_fn=die_with_parent(os.getpid()),
            )
        self._follower = MetricsFollower(self.planned.run_dir.metrics_file, TAIL_BYTES)
        self._started_at = time.monotonic()
        self.state = "running"

    def poll(self) -> bool:
        """Takes in what the run has written; True when it has just ended."""
        assert self._process is not None and self._follower is not None
        # A damaged line is for the report to tell; here it only delays a percentage.
        with contextlib.suppress(ValueError):
            self._add(self._follower.poll())
        code = self._process.poll()
        if code is None:
            return False
        self._conclude(code)
        return True

    def interrupt(self) -> None:
        """Once asks it to stop in order, twice kills it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started_at

    def _conclude(self, code: int) -> None:
        if is_finished(self.planned.run_dir, self.planned.config):
            self.state = "done"
        elif code in (ExitCode.DONE, ExitCode.INTERRUPTED, ExitCode.COME_BACK):
            # Stopped by someone.
            self.state = "unfinished"
        else:
            self.state = "failed"
            self.problem = f"exit code {code}: {last_line(self.log_file)}"

    def _add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if row.get("role") == "learner":
                self.frames = int(row["frames"])


def is_finished(run_dir: RunDir, config: Config) -> bool:
    """Whether the final parameters have been scored, which is the last thing a run does."""
    end = config.frames_of(config.total_steps)
    return any(
        row.get("role") == "evaluator" and row.get("frames", 0) >= end for row in _tail(run_dir)
    )


def _run_all(runs: Sequence[_Run], parallel: int, view: SuiteView) -> StopSignals:
    """Returns when no run is left to start or to wait for; the signals tell why."""
    stop = StopSignals(
        stopping="stopping the runs under way (Ctrl-C again to kill them)",
        killing="killing the runs under way",
    )
    stop.install(kill=lambda: _interrupt(runs))
    passed_on = False
    started_at = time.monotonic()
    while True:
        active = [run for run in runs if run.state == "running"]
        waiting = [run for run in runs if run.state == "waiting"]
        if stop.requested:
            if not active:
                return stop
            if not passed_on:
                _interrupt(active)
            passed_on = True
        else:
            for run in waiting[: parallel - len(active)]:
                run.start()
                view.say(f"started {run.planned.title}; log {run.log_file}")
        for run in active:
            if run.poll():
                view.say(f"{run.planned.title}: {run.state} after {duration_text(run.seconds)}")
        view.update(_state(runs, time.monotonic() - started_at))
        if not waiting and all(run.state != "running" for run in runs):
            return stop
        time.sleep(_POLL_SECONDS)


def _interrupt(runs: Sequence[_Run]) -> None:
    for run in runs:
        run.interrupt()


def _state(runs: Sequence[_Run], elapsed_seconds: float) -> SuiteState:
    cells = [Cell(r.planned.game, r.planned.algorithm, r.state, r.fraction) for r in runs]
    gained = sum(run.frames - run.frames_before for run in runs)
    left = sum(
        max(run.planned.config.frames - run.frames, 0)
        for run in runs
        if run.state in ("waiting", "running")
    )
    eta_seconds = left * elapsed_seconds / gained if gained > 0 else None
    return SuiteState(cells, elapsed_seconds, eta_seconds)


def _say_what_is_there(runs: Sequence[_Run], out: pathlib.Path, say: Callable[[str], None]) -> None:
    done = sum(run.state == "done" for run in runs)
    started = sum(
        run.state == "waiting" and run.planned.run_dir.config_file.exists() for run in runs
    )
    say(
        f"{len(runs)} runs in {out}: {done} done already, {started} to be continued, "
        f"{len(runs) - done - started} new"
    )


def _conclude(runs: Sequence[_Run], stop: StopSignals, *, out: pathlib.Path) -> ExitCode:
    by_state = {
        state: [run for run in runs if run.state == state]
        for state in ("done", "failed", "unfinished", "elsewhere", "waiting")
    }
    for run in by_state["failed"]:
        print(f"failed: {run.planned.title}: {run.problem} (see {run.log_file})")
    for run in by_state["elsewhere"]:
        print(f"left alone: {run.planned.title}: {run.problem}")
    for run in by_state["unfinished"]:
        print(f"not finished: {run.planned.title} ({run.fraction:.0%}; see {run.log_file})")
    left = len(runs) - len(by_state["done"])
    print(f"{len(by_state['done'])} of {len(runs)} runs done", end="")
    print(f"; {left} left: the same command continues" if left else "")
    print(f"see them with: vantage report {out} --out report")
    if by_state["failed"]:
        return ExitCode.FAILED
    return stop.exit_code if stop.requested else ExitCode.DONE


class _Known(NamedTuple):
    """What a suite's folder says of itself."""

    runs: list[str]  # names of all that it is to hold, for a report on what is not there yet
    suite_id: str  # of its jobs


def _prepare(out: pathlib.Path, planned: Sequence[PlannedRun]) -> _Known:
    """Makes the folder, and adds what is planned to what it is to hold."""
    path = out / SUITE_FILE
    try:
        stored = json.loads(path.read_text())
        before = _Known(list(stored["runs"]), stored["suite_id"])
    except (OSError, ValueError, KeyError, TypeError):
        before = _Known([], new_run_id())
    known = before._replace(
        runs=list(dict.fromkeys([*before.runs, *(run.name for run in planned)]))
    )
    try:
        (out / "logs").mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(known._asdict()) + "\n")
    except OSError as error:
        raise InputError(f"cannot write '{out}': {error.strerror}") from None
    return known


def _tail(run_dir: RunDir) -> list[Row]:
    # Whatever is damaged in it is for the report to tell.
    return recent_rows(run_dir.metrics_file, on_malformed=lambda error: None)
