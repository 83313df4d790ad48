"""`vantage tune`: searches for learning rates, each step a suite of runs, here or on Slurm.

Started again, the same command keeps what is done, continues what was interrupted, and goes on
with the search. On Slurm it queues the runs that the searches need next, and returns.
"""

import math
import pathlib
from collections.abc import Callable, Sequence

from launch.config import Config
from launch.engines.options import SlurmOptions
from launch.engines.slurm.submit import check_options, check_partitions
from launch.errors import ExitCode, InputError
from launch.suite.folder import prepare_folder
from launch.suite.plan import PlannedRun
from launch.suite.records import SuiteRecords
from launch.suite.run import StopRuns, run_planned, say_what_is_left
from launch.suite.slurm import suite_on_slurm
from launch.terminal import complain, say
from launch.tune.folder import claim_folder
from launch.tune.plan import Trial, TuneRequest, plan_trials
from launch.tune.result import PICTURE, Scored, Search, flags_of, lines_of, write_result
from launch.tune.scores import score_trial
from launch.tune.search import stand

PlanTrials = Callable[[str, Sequence[int]], list[Trial]]


def tune(
    request: TuneRequest,
    slurm: SlurmOptions,
    extra_args: Sequence[str],
    parse: Callable[[Sequence[str]], Config],
) -> ExitCode:
    """Runs the searches to their end, or as far as they go."""
    request.check()

    def plan(algorithm: str, exponents: Sequence[int]) -> list[Trial]:
        return plan_trials(request, {algorithm: exponents}, extra_args, parse)

    # The first step of every search: what cannot work is refused before anything is written.
    for algorithm in request.algorithms:
        plan(algorithm, (-1, 0, 1))
    if request.engine == "slurm":
        check_options(slurm)
        check_partitions(slurm)
    claim_folder(request)
    records = SuiteRecords(request.records, request.out)
    records.take_back()
    if request.engine == "slurm":
        return _tune_on_slurm(request, slurm, plan, records)
    return _tune_here(request, plan, records)


def _tune_here(request: TuneRequest, plan: PlanTrials, records: SuiteRecords) -> ExitCode:
    stop = StopRuns()
    while True:
        searches = _look(request, plan)
        trials = _next_trials(searches, plan)
        _record(request, searches, trials, records)
        if not trials:
            return _conclude(searches, records)
        planned = _in_order(trials)
        runs = run_planned(planned, request.out, records, stop, parallel=request.parallel or 1)
        if stop.signals.requested:
            say_what_is_left(runs)
            return stop.signals.exit_code
        if any(score_trial(trial, _logs(request)) is None for trial in trials):
            say_what_is_left(runs)
            return ExitCode.FAILED


def _tune_on_slurm(
    request: TuneRequest, slurm: SlurmOptions, plan: PlanTrials, records: SuiteRecords
) -> ExitCode:
    searches = _look(request, plan)
    trials = _next_trials(searches, plan)
    _record(request, searches, trials, records)
    if not trials:
        return _conclude(searches, records)
    for search in searches:
        for line in lines_of(search):
            say(line)
    code = suite_on_slurm(_in_order(trials), slurm, request.out, parallel=request.parallel)
    say("once they are done, the same command goes on with the search")
    return code


def _look(request: TuneRequest, plan: PlanTrials) -> list[Search]:
    """Every search as far as its finished runs carry it."""
    return [_follow(request, algorithm, plan) for algorithm in request.algorithms]


def _follow(request: TuneRequest, algorithm: str, plan: PlanTrials) -> Search:
    scored: dict[int, Scored] = {}
    while True:
        scores = {k: found.score.score for k, found in scored.items()}
        standing = stand(scores, max_moves=request.max_moves)
        known = {
            trial.exponent: Scored(trial, score)
            for trial in plan(algorithm, standing.needed)
            if (score := score_trial(trial, _logs(request))) is not None
        }
        scored |= known
        if not known:
            return Search(algorithm, request.start, standing, scored)


def _next_trials(searches: Sequence[Search], plan: PlanTrials) -> list[Trial]:
    return [t for search in searches for t in plan(search.algorithm, search.standing.needed)]


def _in_order(trials: Sequence[Trial]) -> list[PlannedRun]:
    """The first seed of everything first, as a suite has it."""
    return sorted((run for trial in trials for run in trial.runs), key=lambda run: run.seed)


def _record(
    request: TuneRequest,
    searches: Sequence[Search],
    trials: Sequence[Trial],
    records: SuiteRecords,
) -> None:
    """All runs so far and those to come, and what is known of the rates."""
    tried = [found.trial for search in searches for found in search.scored.values()]
    planned = _in_order([*tried, *trials])
    prepare_folder(request.out, planned)
    records.start(planned)
    try:
        write_result(searches, records.folder)
    except OSError as error:
        raise InputError(f"cannot write '{records.folder}': {error.strerror}") from None


def _conclude(searches: Sequence[Search], records: SuiteRecords) -> ExitCode:
    say("learning rates and their scores (mean over games of the human-normalized score):")
    for search in searches:
        for line in lines_of(search):
            say(line)
    hopeless = [s.algorithm for s in searches if math.isinf(s.scored[s.standing.best].score.score)]
    if hopeless:
        complain(
            f"{', '.join(hopeless)}: learning diverged at every rate that was tried; start lower, "
            "in another --out"
        )
        return ExitCode.FAILED
    for line in flags_of(searches):
        say(line)
    say(f"see {records.folder / PICTURE}, and rates.csv beside it")
    return ExitCode.DONE


def _logs(request: TuneRequest) -> pathlib.Path:
    return request.out / "logs"
