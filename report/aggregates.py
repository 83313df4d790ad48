"""Aggregates over games and seeds, with 95 % stratified bootstrap intervals (rliable).

A sample is a list of strata, one per game: float [runs, points] of human-normalized scores. A
bootstrap resample draws the runs of each game anew; games are never resampled. Where every game
has the same number of runs this is rliable's matrix [runs, games]. Where an unfinished suite has
more runs of one game than of another, all of them are pooled, and that game weighs more.

With one run per game there is nothing to resample: the interval is NaN.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from rliable import library, metrics
from scipy import stats

from report.final_scores import final_normalized
from report.methods import Methods, runs_by_game
from report.runs import Run

Strata = Sequence[np.ndarray]
Statistic = Callable[[Strata], np.ndarray]  # strata -> float [values]

PROFILE_POINTS = 101
_CURVE_POINTS = 40
_SEED = 0  # the same runs give the same report
AGGREGATES = ("median", "iqm", "mean", "optimality_gap")


class Estimate(NamedTuple):
    """A statistic of the sample and its interval, float [values] each."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


class IqmCurve(NamedTuple):
    """Interquartile mean against frames."""

    frames: np.ndarray  # float [points]
    num_runs: np.ndarray  # int [points], of the runs that reached these frames
    iqm: Estimate  # [points]


class Aggregates(NamedTuple):
    """What the report says about the methods, over the games that all of them played."""

    games: Sequence[str]
    num_runs: dict[str, Sequence[int]]  # of each game
    curves: dict[str, IqmCurve]
    final: dict[str, Estimate]  # by method, in the order of AGGREGATES
    thresholds: np.ndarray  # float [PROFILE_POINTS], human-normalized scores
    profiles: dict[str, Estimate]  # fraction of runs above each threshold
    improvement: dict[tuple[str, str], Estimate]  # P(first > second), [1]

    @property
    def uneven(self) -> bool:
        """Whether some games have more runs than others."""
        return len({count for counts in self.num_runs.values() for count in counts}) > 1


def aggregate(methods: Methods, *, resamples: int) -> Aggregates | None:
    """None without a game that has reference scores and an evaluation of every method."""
    played = {name: by_game for name, runs in methods.items() if (by_game := _scored(runs))}
    games = _common(list(played.values()))
    if not games:
        return None
    samples = {name: [by_game[game] for game in games] for name, by_game in played.items()}
    final = {
        name: [np.array([[final_normalized(run)] for run in runs]) for runs in strata]
        for name, strata in samples.items()
    }
    thresholds = _thresholds([stratum for strata in final.values() for stratum in strata])
    return Aggregates(
        games=games,
        num_runs={name: [len(runs) for runs in strata] for name, strata in samples.items()},
        curves=_curves(samples, resamples),
        final={n: estimate(s, four_aggregates, resamples=resamples) for n, s in final.items()},
        thresholds=thresholds,
        profiles={
            name: estimate(strata, _profile_at(thresholds), resamples=resamples)
            for name, strata in final.items()
        },
        improvement={
            (x, y): estimate(
                [*final[x], *final[y]], probability_of_improvement, resamples=resamples
            )
            for i, x in enumerate(final)
            for y in list(final)[i + 1 :]
        },
    )


def best_of(final: Mapping[str, Estimate], index: int) -> set[str]:
    """The method best by one of AGGREGATES, and those whose intervals overlap its own."""
    # Less of the optimality gap is better, more of everything else.
    sign = -1.0 if AGGREGATES[index] == "optimality_gap" else 1.0
    ends = {
        name: (sign * one.value[index], *sorted((sign * one.low[index], sign * one.high[index])))
        for name, one in final.items()
    }
    if len(ends) < 2 or any(np.isnan(low) for _, low, _ in ends.values()):
        return set()
    _, least, _ = max(ends.values())
    return {name for name, (_, _, high) in ends.items() if high >= least}


def estimate(strata: Strata, statistic: Statistic, *, resamples: int) -> Estimate:
    """The statistic with its percentile bootstrap interval."""
    value = statistic(strata)
    if all(len(stratum) == 1 for stratum in strata):
        return Estimate(value, np.full_like(value, np.nan), np.full_like(value, np.nan))
    if len({len(stratum) for stratum in strata}) == 1:
        sample = np.stack(strata, axis=1)
        of_sample = lambda matrix: statistic(list(np.moveaxis(matrix, 1, 0)))  # noqa: E731
    else:
        sample = list(strata)
        of_sample = lambda *resampled: statistic(resampled)  # noqa: E731
    with _fixed_global_seed():
        _, intervals = library.get_interval_estimates({"": sample}, of_sample, reps=resamples)
    low, high = intervals[""]
    return Estimate(value, low, high)


def interquartile_mean(strata: Strata) -> np.ndarray:
    """Mean of the middle half of all runs of all games, at each point."""
    return stats.trim_mean(np.concatenate(strata), 0.25, axis=0)


def four_aggregates(strata: Strata) -> np.ndarray:
    """Median and mean over games of their mean scores; IQM and optimality gap over all runs."""
    means = np.array([stratum.mean() for stratum in strata])
    runs = np.concatenate(strata)
    gap = metrics.aggregate_optimality_gap(runs)
    return np.array([np.median(means), metrics.aggregate_iqm(runs), means.mean(), gap])


def probability_of_improvement(both: Strata) -> np.ndarray:
    """Mean over games of P(a run of the first half of the strata > one of the second half)."""
    # rliable's own calls a rank test for each game and resample: minutes instead of seconds.
    half = len(both) // 2
    wins = [
        np.mean((x > y.T) + 0.5 * (x == y.T)) for x, y in zip(both[:half], both[half:], strict=True)
    ]
    return np.array([np.mean(wins)])


def score_at(run: Run, frames: np.ndarray) -> np.ndarray:
    """Human-normalized score of a run at these frames, in straight lines between evaluations."""
    return np.interp(frames, run.evaluations.frames, run.evaluations.normalized)


def _scored(runs: Sequence[Run]) -> dict[str, list[Run]]:
    with_reference = [run for run in runs if np.isfinite(run.evaluations.normalized).all()]
    return runs_by_game(with_reference)


def _common(played: Sequence[dict[str, list[Run]]]) -> list[str]:
    games = {game for by_game in played for game in by_game}
    return sorted(game for game in games if all(game in by_game for by_game in played))


def _profile_at(thresholds: np.ndarray) -> Statistic:
    return lambda strata: np.mean(np.concatenate(strata) > thresholds, axis=0)


def _thresholds(scores: Strata) -> np.ndarray:
    lowest, highest = min(map(np.min, scores)), max(map(np.max, scores))
    return np.linspace(min(lowest, 0.0), max(highest, 0.1), PROFILE_POINTS)


def _curves(samples: dict[str, list[list[Run]]], resamples: int) -> dict[str, IqmCurve]:
    runs = [run for strata in samples.values() for stratum in strata for run in stratum]
    first = max(run.evaluations.frames[0] for run in runs)
    last = {name: _last_frames(strata) for name, strata in samples.items()}
    points = min(_CURVE_POINTS, max(len(run.evaluations.frames) for run in runs))
    grid = np.linspace(first, max(last.values()), points) if points > 1 else np.array([])
    return {
        # A curve ends at its own last frame, which may lie between two points of the grid.
        name: _curve(strata, np.append(grid[grid < last[name]], last[name]), resamples)
        for name, strata in samples.items()
    }


def _last_frames(strata: Sequence[Sequence[Run]]) -> float:
    """The last frame that some run of every game has reached."""
    return float(min(max(run.evaluations.frames[-1] for run in runs) for runs in strata))


def _curve(strata: Sequence[Sequence[Run]], frames: np.ndarray, resamples: int) -> IqmCurve:
    runs = [run for stratum in strata for run in stratum]
    reached = np.array([frames <= run.evaluations.frames[-1] for run in runs])
    # Between two ends of unfinished runs the sample is the same: one bootstrap for all its points.
    cuts = np.nonzero((reached[:, 1:] != reached[:, :-1]).any(axis=0))[0] + 1
    pieces = [
        estimate(_scores_at(strata, piece), interquartile_mean, resamples=resamples)
        for piece in np.split(frames, cuts)
    ]
    return IqmCurve(
        frames=frames,
        num_runs=reached.sum(axis=0),
        iqm=Estimate(*(np.concatenate(column) for column in zip(*pieces, strict=True))),
    )


def _scores_at(strata: Sequence[Sequence[Run]], frames: np.ndarray) -> list[np.ndarray]:
    return [
        np.array(
            [score_at(run, frames) for run in runs if run.evaluations.frames[-1] >= frames[-1]]
        )
        for runs in strata
    ]


@contextlib.contextmanager
def _fixed_global_seed() -> Iterator[None]:
    """rliable draws from NumPy's global generator, whatever random state it is given."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(_SEED)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
