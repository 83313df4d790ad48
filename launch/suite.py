"""`vantage suite`: runs the grid, some at a time, each in a process of its own.

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

from launch.config import Config
from launch.errors import ExitCode, InputError
from launch.monitor.follow import MetricsFollower
from launch.monitor.terminal import format_duration
from launch.run_dir import RunDir, write_atomically
from launch.status import read_status
from launch.suite_plan import PlannedRun, SuiteRequest, plan_suite, train_command
from launch.suite_view import Cell, SuiteState, SuiteView
from launch.supervisor import die_with_parent
from report.metrics_file import Row, read_rows

SUITE_FILE = "suite.json"
_POLL_SECONDS = 0.5
_TAIL_BYTES = 1 << 20


def suite(
    request: SuiteRequest, extra_args: Sequence[str], parse: Callable[[Sequence[str]], Config]
) -> ExitCode:
    """Runs what is not done yet; fails if a run failed."""
    planned = plan_suite(request, extra_args, parse)
    try:
        (request.out / "logs").mkdir(parents=True, exist_ok=True)
        _remember(request.out / SUITE_FILE, planned)
    except OSError as error:
        raise InputError(f"cannot write '{request.out}': {error.strerror}") from None
    view = SuiteView()
    runs = [_Run(run, request.out / "logs" / f"{run.name}.log") for run in planned]
    _say_what_is_there(runs, request.out, view.say)
    stop = _StopSignals(runs, view.say)
    stop.install()
    try:
        _run_all(runs, request.parallel, view, stop)
    finally:
        view.close()
    return _conclude(runs, stopped=stop.count > 0, out=request.out)


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
    def title(self) -> str:
        return f"{self.planned.algorithm} on {self.planned.game}, seed {self.planned.seed}"

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
        self._follower = MetricsFollower(self.planned.run_dir.metrics_file, _TAIL_BYTES)
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

    def signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started_at

    def _conclude(self, code: int) -> None:
        if is_finished(self.planned.run_dir, self.planned.config):
            self.state = "done"
        elif code in (ExitCode.DONE, ExitCode.INTERRUPTED):
            # Stopped by someone, or handed over to a cluster that goes on with it.
            self.state = "unfinished"
        else:
            self.state = "failed"
            self.problem = f"exit code {code}: {_last_line(self.log_file)}"

    def _add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if row.get("role") == "learner":
                self.frames = int(row["frames"])


class _StopSignals:
    """Ctrl-C or SIGTERM: passed on to the runs under way, and no other run is started."""

    def __init__(self, runs: Sequence[_Run], say: Callable[[str], None]):
        self._runs, self._say = runs, say
        self.count = 0

    def install(self) -> None:
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, frame: object) -> None:
        del number, frame
        self.count += 1
        for run in self._runs:
            run.signal(signal.SIGINT)


def is_finished(run_dir: RunDir, config: Config) -> bool:
    """Whether the final parameters have been scored, which is the last thing a run does."""
    end = config.total_steps * config.environment.action_repeat
    return any(
        row.get("role") == "evaluator" and row.get("frames", 0) >= end for row in _tail(run_dir)
    )


def _run_all(runs: Sequence[_Run], parallel: int, view: SuiteView, stop: _StopSignals) -> None:
    started_at = time.monotonic()
    said_stopping = False
    while True:
        active = [run for run in runs if run.state == "running"]
        waiting = [run for run in runs if run.state == "waiting"]
        if stop.count and not said_stopping:
            view.say("stopping the runs under way (Ctrl-C again to kill them)")
            said_stopping = True
        if not stop.count:
            for run in waiting[: parallel - len(active)]:
                run.start()
                view.say(f"started {run.title}; log {run.log_file}")
        elif not active:
            return
        for run in active:
            if run.poll():
                view.say(f"{run.title}: {run.state} after {format_duration(run.seconds)}")
        view.update(_state(runs, time.monotonic() - started_at))
        if not waiting and all(run.state != "running" for run in runs):
            return
        time.sleep(_POLL_SECONDS)


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


def _conclude(runs: Sequence[_Run], *, stopped: bool, out: pathlib.Path) -> ExitCode:
    by_state = {
        state: [run for run in runs if run.state == state]
        for state in ("done", "failed", "unfinished", "elsewhere", "waiting")
    }
    for run in by_state["failed"]:
        print(f"failed: {run.title}: {run.problem} (see {run.log_file})")
    for run in by_state["elsewhere"]:
        print(f"left alone: {run.title}: {run.problem}")
    for run in by_state["unfinished"]:
        print(f"not finished: {run.title} ({run.fraction:.0%}; see {run.log_file})")
    left = len(runs) - len(by_state["done"])
    print(f"{len(by_state['done'])} of {len(runs)} runs done", end="")
    print(f"; {left} left: the same command continues" if left else "")
    print(f"see them with: vantage report {out} --out report")
    if by_state["failed"]:
        return ExitCode.FAILED
    return ExitCode.INTERRUPTED if stopped else ExitCode.DONE


def _remember(path: pathlib.Path, planned: Sequence[PlannedRun]) -> None:
    """What the suite is to hold, for a report on what is not there yet."""
    names = [run.name for run in planned]
    try:
        before = json.loads(path.read_text())["runs"]
    except (OSError, ValueError, KeyError, TypeError):
        before = []
    write_atomically(path, json.dumps({"runs": list(dict.fromkeys([*before, *names]))}) + "\n")


def _tail(run_dir: RunDir) -> list[Row]:
    if not run_dir.metrics_file.exists():
        return []
    # Whatever is damaged in it is for the report to tell.
    return list(read_rows(run_dir.metrics_file, _TAIL_BYTES, on_malformed=lambda error: None))


def _last_line(log_file: pathlib.Path) -> str:
    lines = log_file.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"
