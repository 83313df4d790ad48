"""The score of each run at its end, and the per-game table beside the paper's.

As in the paper, the score of a run is the mean of its evaluations over its last 5M frames; a run
too short for that is scored by those of its second half, and the table says so. The error is that
of the mean over runs (seeds), not over evaluations.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from report.methods import Methods, games_of, runs_by_game
from report.paper_table import Score, paper_scores, statistically_best
from report.runs import Run

WINDOW_FRAMES = 5_000_000


class Cell(NamedTuple):
    """One method on one game."""

    game: str
    method: str
    raw: Score
    normalized: Score | None  # None for a game without random and human scores
    paper: Score | None  # human-normalized
    num_runs: int
    evaluations: int  # over all runs, those that were averaged
    short_run: bool  # some run was shorter than the window, and its second half was averaged
    best: bool = False  # among the statistically best methods of its game

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, human-normalized."""
        if self.normalized is None or self.paper is None:
            return None
        return self.normalized.mean - self.paper.mean


def in_window(run: Run) -> np.ndarray:
    """Which evaluations the score of a run is the mean of."""
    frames = run.evaluations.frames
    if is_shorter_than_window(run):
        # Not all: the first evaluation is of a network that has learned nothing.
        return frames >= frames[-1] / 2
    return frames > frames[-1] - WINDOW_FRAMES


def is_shorter_than_window(run: Run) -> bool:
    """Whether the run has not trained for as long as the window is."""
    return bool(run.evaluations.frames[-1] < WINDOW_FRAMES)


def final_normalized(run: Run) -> float:
    """The human-normalized score of a run at its end."""
    return float(run.evaluations.normalized[in_window(run)].mean())


def table_of(methods: Methods) -> list[Cell]:
    """A cell for each game and method that has evaluations; games in alphabetical order."""
    by_game = {name: runs_by_game(runs) for name, runs in methods.items()}
    games = games_of([run for runs in methods.values() for run in runs])
    cells = []
    for game in games:
        row = [_cell(game, name, by_game[name][game]) for name in methods if game in by_game[name]]
        best = statistically_best([cell.raw for cell in row])
        cells += [cell._replace(best=is_best) for cell, is_best in zip(row, best, strict=True)]
    return cells


def _cell(game: str, method: str, runs: Sequence[Run]) -> Cell:
    chosen = [in_window(run) for run in runs]
    raw = [run.evaluations.returns[c].mean() for run, c in zip(runs, chosen, strict=True)]
    normalized = [final_normalized(run) for run in runs]
    return Cell(
        game=game,
        method=method,
        raw=_mean_and_error(raw),
        normalized=_mean_and_error(normalized) if np.isfinite(normalized).all() else None,
        paper=paper_scores().get((game, runs[0].algorithm)),
        num_runs=len(runs),
        evaluations=int(sum(c.sum() for c in chosen)),
        short_run=any(is_shorter_than_window(run) for run in runs),
    )


def _mean_and_error(values: Sequence[float]) -> Score:
    mean = float(np.mean(values))
    if len(values) < 2:
        return Score(mean, None)
    return Score(mean, float(np.std(values, ddof=1) / np.sqrt(len(values))))
