"""`vantage suite`: runs the grid, some at a time, each in a process of its own or as a job.

Started again, the same command skips the runs that are done and continues the others. A run that
fails does not stop the rest. Ctrl-C once stops the runs under way in order, twice kills them.
"""

import os
import pathlib
import time
from collections.abc import Callable, Sequence

from launch.config import Config
from launch.engines.options import SlurmOptions
from launch.errors import ExitCode
from launch.suite.core_shares import CoreShares
from launch.suite.folder import prepare_folder
from launch.suite.plan import PlannedRun, SuiteRequest, plan_suite
from launch.suite.records import SuiteRecords
from launch.suite.slurm import suite_on_slurm
from launch.suite.suite_run import SuiteRun
from launch.suite.view import Cell, SuiteState, SuiteView
from launch.supervise.stop_signals import StopSignals
from launch.terminal import make_console, say
from report.counted import counted
from report.duration import duration_text

_POLL_SECONDS = 0.5
_LEFT = {
    "failed": "failed: {title}: {run.problem} (see {run.log_file})",
    "elsewhere": "left alone: {title}: {run.problem}",
    "unfinished": "not finished: {title} ({run.fraction:.0%}; see {run.log_file})",
}


def suite(
    request: SuiteRequest,
    slurm: SlurmOptions,
    extra_args: Sequence[str],
    parse: Callable[[Sequence[str]], Config],
) -> ExitCode:
    """Runs what is not done yet; fails if a run failed."""
    planned = plan_suite(request, extra_args, parse)
    records = SuiteRecords(request.records, request.out)
    if records.take_back():
        planned = plan_suite(request, extra_args, parse)  # refuses what is of another suite
    if request.engine == "slurm":
        code = suite_on_slurm(planned, slurm, request.out, parallel=request.parallel)
        records.start(planned)
        return code
    prepare_folder(request.out, planned)
    records.start(planned)
    stop = StopRuns()
    runs = run_planned(planned, request.out, records, stop, parallel=request.parallel or 1)
    say_what_is_left(runs)
    say(f"see them with: vantage report {request.out} --out report")
    if any(run.state == "failed" for run in runs):
        return ExitCode.FAILED
    return stop.signals.exit_code if stop.signals.requested else ExitCode.DONE


class StopRuns:
    """Ctrl-C once stops the runs under way in order, twice kills them."""

    def __init__(self) -> None:
        self.runs: Sequence[SuiteRun] = ()  # those that may be under way
        self.signals = StopSignals(
            stopping="stopping the runs under way (Ctrl-C again to kill them)",
            killing="killing the runs under way",
        )
        self.signals.install(kill=self.interrupt)

    def interrupt(self) -> None:
        """Asks every run under way to stop."""
        for run in self.runs:
            run.interrupt()


def run_planned(
    planned: Sequence[PlannedRun],
    out: pathlib.Path,
    records: SuiteRecords,
    stop: StopRuns,
    *,
    parallel: int,
) -> list[SuiteRun]:
    """Runs what is not done yet, until nothing is left to start or to wait for."""
    view = SuiteView(make_console())
    runs = [SuiteRun(run, out / "logs" / f"{run.name}.log") for run in planned]
    stop.runs = runs
    _say_what_is_there(runs, out, view.say)
    try:
        _run_all(runs, parallel, view, records, stop)
    finally:
        view.close()
    return runs


def _run_all(
    runs: Sequence[SuiteRun],
    parallel: int,
    view: SuiteView,
    records: SuiteRecords,
    stop: StopRuns,
) -> None:
    passed_on = False
    shares = CoreShares(os.sched_getaffinity(0), runs=parallel)
    started_at = time.monotonic()
    while True:
        active = [run for run in runs if run.state == "running"]
        waiting = [run for run in runs if run.state == "waiting"]
        if stop.signals.requested:
            if not active:
                return
            if not passed_on:
                stop.interrupt()
            passed_on = True
        else:
            for run in waiting[: parallel - len(active)]:
                run.start(shares.take())
                view.say(f"started {run.planned.title}; log {run.log_file}")
        for run in active:
            if run.poll():
                shares.give_back(run.cores)
                view.say(f"{run.planned.title}: {run.state} after {duration_text(run.seconds)}")
                records.update()
        view.update(_state(runs, time.monotonic() - started_at))
        if not waiting and all(run.state != "running" for run in runs):
            return
        time.sleep(_POLL_SECONDS)


def _state(runs: Sequence[SuiteRun], elapsed_seconds: float) -> SuiteState:
    cells = [Cell(r.planned.game, r.planned.method, r.state, r.fraction) for r in runs]
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
        f"{counted(len(runs), 'run')} in {out}: {done} done already, {started} to be continued, "
        f"{len(runs) - done - started} new"
    )


def say_what_is_left(runs: Sequence[SuiteRun]) -> None:
    """Names the runs that are not done, with the reason."""
    for state, text in _LEFT.items():
        for run in (run for run in runs if run.state == state):
            say(text.format(run=run, title=run.planned.title))
    done = sum(run.state == "done" for run in runs)
    left = len(runs) - done
    more = f"; {left} left: the same command continues" if left else ""
    say(f"{done} of {counted(len(runs), 'run')} done{more}")
