"""IQM, intervals, profiles, improvement: against computations that share nothing with ours."""

import itertools
import math

import numpy as np
import pytest

from tests.report.synthetic_runs import REFERENCES, write_run, write_suite

pytest.importorskip("rliable", reason="rliable is in the full environment only")

from rliable import library, metrics

from report.aggregates import (
    AGGREGATES,
    aggregate,
    estimate,
    four_aggregates,
    interquartile_mean,
    probability_of_improvement,
    score_at,
)
from report.final_scores import final_normalized
from report.methods import methods_of
from report.runs import find_runs


def quiet(message: str) -> None:
    raise AssertionError(f"unexpected warning: {message}")


def aggregates_of(folder, **options):
    return aggregate(methods_of(find_runs(folder, REFERENCES, quiet), quiet), **options)


def middle_half_mean(values: list[float]) -> float:
    """The definition: sort, drop the lowest and the highest quarter, take the mean."""
    ordered = sorted(values)
    cut = math.floor(len(ordered) / 4)
    kept = ordered[cut : len(ordered) - cut]
    return sum(kept) / len(kept)


def every_resample(strata: list[list[float]]):
    """All equally likely stratified resamples, enumerated instead of drawn."""
    per_game = [list(itertools.product(stratum, repeat=len(stratum))) for stratum in strata]
    for chosen in itertools.product(*per_game):
        yield [value for game in chosen for value in game]


def test_the_interquartile_mean_is_that_of_the_definition():
    rng = np.random.default_rng(1)
    for runs, games in ((1, 1), (2, 1), (3, 2), (5, 7)):
        strata = [rng.normal(size=(runs, 2)) for _ in range(games)]
        pooled = np.concatenate(strata)
        expected = [middle_half_mean(pooled[:, point].tolist()) for point in range(2)]
        np.testing.assert_allclose(interquartile_mean(strata), expected)


def test_intervals_agree_with_the_enumerated_bootstrap_distribution():
    strata = [[0.1, 0.4, 0.9], [0.3, 0.5, 1.4]]
    exact = np.array([middle_half_mean(sample) for sample in every_resample(strata)])
    assert len(exact) == 27 * 27
    found = estimate([np.array(s)[:, None] for s in strata], interquartile_mean, resamples=4000)
    assert found.value[0] == pytest.approx(middle_half_mean(strata[0] + strata[1]))
    # The interval's ends are quantiles of 4000 draws: as exact ones of a level that is off by some
    # standard errors of a binomial fraction.
    slack = 4 * math.sqrt(0.025 * 0.975 / 4000)
    for end, level in ((found.low[0], 0.025), (found.high[0], 0.975)):
        lower, upper = np.quantile(exact, [level - slack, level + slack])
        assert lower - 1e-9 <= end <= upper + 1e-9


def test_games_with_different_numbers_of_runs_are_resampled_each_by_itself():
    strata = [[0.0, 1.0], [10.0, 10.0, 10.0]]
    found = estimate(
        [np.array(s)[:, None] for s in strata],
        lambda games: np.array([games[0].mean(), games[1].mean()]),
        resamples=500,
    )
    np.testing.assert_allclose(found.value, [0.5, 10.0])
    np.testing.assert_allclose(found.low, [0.0, 10.0])
    np.testing.assert_allclose(found.high, [1.0, 10.0])


def test_one_run_per_game_has_no_interval():
    found = estimate([np.array([[0.2]]), np.array([[0.4]])], interquartile_mean, resamples=10)
    assert found.value[0] == pytest.approx(0.3)
    assert np.isnan(found.low[0]) and np.isnan(found.high[0])


def test_the_same_runs_give_the_same_intervals_and_leave_the_global_generator_alone():
    strata = [np.random.default_rng(2).normal(size=(4, 1)) for _ in range(3)]
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first = estimate(strata, interquartile_mean, resamples=50)
    second = estimate(strata, interquartile_mean, resamples=50)
    assert first == second
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_aggregates_and_improvement_are_rliables():
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.8, 0.5, (4, 6)).round(1), rng.normal(0.6, 0.5, (3, 6)).round(1)
    as_strata = lambda matrix: [column[:, None] for column in matrix.T]  # noqa: E731
    expected = [
        metrics.aggregate_median(x),
        metrics.aggregate_iqm(x),
        metrics.aggregate_mean(x),
        metrics.aggregate_optimality_gap(x),
    ]
    np.testing.assert_allclose(four_aggregates(as_strata(x)), expected)
    found = probability_of_improvement([*as_strata(x), *as_strata(y)])
    np.testing.assert_allclose(found, [metrics.probability_of_improvement(x, y)])


def test_a_whole_suite_agrees_with_rliable_on_its_matrix(tmp_path):
    runs = find_runs(write_suite(tmp_path, algorithms=("va", "q")), REFERENCES, quiet)
    found = aggregate(methods_of(runs, quiet), resamples=200)
    matrix = np.array(
        [
            [
                final_normalized(run)
                for run in runs
                if (run.algorithm, run.game, run.seed) == ("va", game, seed)
            ]
            for game in ("breakout", "pong")
            for seed in (1, 2, 3)
        ]
    ).reshape(2, 3)
    assert found.final["va"].value[AGGREGATES.index("iqm")] == pytest.approx(
        metrics.aggregate_iqm(matrix.T)
    )
    profile = library.score_distributions(matrix.T, found.thresholds)
    np.testing.assert_allclose(found.profiles["va"].value, profile)
    curve = found.curves["va"]
    assert curve.num_runs.tolist() == [6] * len(curve.frames)
    last = [score_at(run, curve.frames[-1:])[0] for run in runs if run.algorithm == "va"]
    assert curve.iqm.value[-1] == pytest.approx(middle_half_mean(last))
    assert (curve.iqm.low <= curve.iqm.value).all() and (curve.iqm.value <= curve.iqm.high).all()


def test_an_unfinished_run_counts_as_far_as_it_is(tmp_path):
    for seed, returns in ((1, [0.0, 2.0, 4.0, 6.0]), (2, [0.0, 4.0])):
        write_run(tmp_path / str(seed), seed=seed, returns=returns, total_frames=4000)
    curve = aggregates_of(tmp_path, resamples=50).curves["va"]
    assert curve.frames.tolist() == [1000, 2000, 3000, 4000]
    assert curve.num_runs.tolist() == [2, 2, 1, 1]
    random, human = REFERENCES["pong"]
    raw = random + curve.iqm.value * (human - random)
    np.testing.assert_allclose(raw, [0.0, 3.0, 4.0, 6.0])
    assert np.isnan(curve.iqm.low[-1])


def test_only_games_that_every_method_played_are_aggregated(tmp_path):
    write_run(tmp_path / "a", game="pong", algorithm="va")
    write_run(tmp_path / "b", game="pong", algorithm="q")
    write_run(tmp_path / "c", game="breakout", algorithm="q", returns=(5.0, 6.0))
    found = aggregates_of(tmp_path, resamples=10)
    assert found.games == ["pong"]
    assert found.num_runs == {"va": [1], "q": [1]}


def test_methods_without_a_common_game_are_not_compared(tmp_path):
    write_run(tmp_path / "a", game="pong", algorithm="va")
    write_run(tmp_path / "b", game="breakout", algorithm="q")
    assert aggregates_of(tmp_path, resamples=10) is None
