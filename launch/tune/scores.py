"""The score of a rate: human-normalized, at the end of training, averaged over games and seeds.

A run is scored as a report scores it: the mean of the evaluations of its last 5M frames, or of its
second half where it is shorter. A rate's score is the mean over games of the mean over seeds. A
run whose learning diverged scores minus infinity, and so does its rate.
"""

import math
import pathlib
from typing import NamedTuple

import numpy as np

from actors.games import reference_scores
from launch.errors import DIVERGED
from launch.suite.plan import PlannedRun
from launch.suite.suite_run import is_finished
from launch.supervise.log_file import last_lines
from launch.tune.plan import Trial
from report.final_scores import final_normalized
from report.runs import read_run

# Lines of a log, from the end, among which a run that diverged says so.
_LAST_WORDS = 20


class TrialScore(NamedTuple):
    """What a rate has reached."""

    by_game: dict[str, list[float]]  # of each seed
    score: float


def score_trial(trial: Trial, logs: pathlib.Path) -> TrialScore | None:
    """None while a run of it is not done; `logs` has the output of each run."""
    by_game: dict[str, list[float]] = {}
    for run in trial.runs:
        score = _score_run(run, logs / f"{run.name}.log")
        if score is None:
            return None
        by_game.setdefault(run.game, []).append(score)
    # Every game weighs the same.
    return TrialScore(by_game, float(np.mean([np.mean(scores) for scores in by_game.values()])))


def _score_run(run: PlannedRun, log: pathlib.Path) -> float | None:
    if is_finished(run.run_dir, run.config):
        # What is damaged in a run is for the report to tell.
        found = read_run(run.run_dir.root, reference_scores(), lambda problem: None)
        return final_normalized(found)
    diverged = any(DIVERGED in line for line in last_lines(log, _LAST_WORDS))
    return -math.inf if diverged else None
