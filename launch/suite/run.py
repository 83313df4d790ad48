"""`vantage suite`: runs the grid, some at a time, each in a process of its own or as a job.

Started again, the same command skips the runs that are done and continues the others. A run that
fails does not stop the rest. Ctrl-C once stops the runs under way in order, twice kills them.
"""

import pathlib
import time
from collections.abc import Callable, Sequence

from launch.config import Config
from launch.engines.options import SlurmOptions
from launch.errors import ExitCode
from launch.suite.folder import prepare_folder
from launch.suite.plan import SuiteRequest, plan_suite
from launch.suite.slurm import suite_on_slurm
from launch.suite.suite_run import SuiteRun
from launch.suite.view import Cell, SuiteState, SuiteView
from launch.supervise.stop_signals import StopSignals
from launch.terminal import make_console, say
from report.duration import duration_text

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
        return suite_on_slurm(request, slurm, planned)
    prepare_folder(request.out, planned)
    view = SuiteView(make_console())
    runs = [SuiteRun(run, request.out / "logs" / f"{run.name}.log") for run in planned]
    _say_what_is_there(runs, request.out, view.say)
    try:
        stop = _run_all(runs, request.parallel or 1, view)
    finally:
        view.close()
    return _conclude(runs, stop, out=request.out)


def _run_all(runs: Sequence[SuiteRun], parallel: int, view: SuiteView) -> StopSignals:
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


def _interrupt(runs: Sequence[SuiteRun]) -> None:
    for run in runs:
        run.interrupt()


def _state(runs: Sequence[SuiteRun], elapsed_seconds: float) -> SuiteState:
    cells = [Cell(r.planned.game, r.planned.algorithm, r.state, r.fraction) for r in runs]
    gained = sum(run.frames - run.frames_before for run in runs)
    left = sum(
        max(run.planned.config.frames - run.frames, 0)
        for run in runs
        if run.state in ("waiting", "running")
    )
    eta_seconds = left * elapsed_seconds / gained if gained > 0 else None
    return SuiteState(cells, elapsed_seconds, eta_seconds)


def _say_what_is_there(
    runs: Sequence[SuiteRun], out: pathlib.Path, say: Callable[[str], None]
) -> None:
    done = sum(run.state == "done" for run in runs)
    started = sum(
        run.state == "waiting" and run.planned.run_dir.config_file.exists() for run in runs
    )
    say(
        f"{len(runs)} runs in {out}: {done} done already, {started} to be continued, "
        f"{len(runs) - done - started} new"
    )


def _conclude(runs: Sequence[SuiteRun], stop: StopSignals, *, out: pathlib.Path) -> ExitCode:
    by_state = {
        state: [run for run in runs if run.state == state]
        for state in ("done", "failed", "unfinished", "elsewhere", "waiting")
    }
    for run in by_state["failed"]:
        say(f"failed: {run.planned.title}: {run.problem} (see {run.log_file})")
    for run in by_state["elsewhere"]:
        say(f"left alone: {run.planned.title}: {run.problem}")
    for run in by_state["unfinished"]:
        say(f"not finished: {run.planned.title} ({run.fraction:.0%}; see {run.log_file})")
    left = len(runs) - len(by_state["done"])
    more = f"; {left} left: the same command continues" if left else ""
    say(f"{len(by_state['done'])} of {len(runs)} runs done{more}")
    say(f"see them with: vantage report {out} --out report")
    if by_state["failed"]:
        return ExitCode.FAILED
    return stop.exit_code if stop.requested else ExitCode.DONE
