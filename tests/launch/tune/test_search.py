"""The search as a function of scores, against brute force."""

import math

import hypothesis
import hypothesis.strategies as st
import pytest

from launch.tune.search import Standing, rate_of, stand

SCORES = st.one_of(st.integers(-5, 5).map(float), st.just(-math.inf))


def run_search(score_of, *, max_moves=20):
    """Scores what is asked for until the search is over; returns its end and what was asked."""
    scores, asked = {}, []
    while True:
        standing = stand(scores, max_moves=max_moves)
        if standing.ended is not None:
            return standing, asked
        assert standing.needed
        for exponent in standing.needed:
            asked.append(exponent)
            scores[exponent] = score_of(exponent)


@hypothesis.given(
    st.integers(-6, 6), st.lists(st.floats(0.01, 5.0), min_size=16, max_size=16), st.booleans()
)
def test_scores_with_one_peak_lead_to_it(peak, falls, diverges):
    def score_of(exponent):
        if diverges and exponent > max(peak, 0):
            return -math.inf
        return -sum(falls[: abs(exponent - peak)])

    standing, asked = run_search(score_of)
    grid = range(-8, 9)
    assert standing.best == max(grid, key=score_of) == peak
    assert standing.ended == "neither improves"
    assert standing.moves == abs(peak)
    assert len(asked) == len(set(asked)) == abs(peak) + 3


@hypothesis.given(
    st.dictionaries(st.integers(-8, 8), SCORES, min_size=17, max_size=17), st.integers(1, 7)
)
def test_any_scores_end_the_search_where_neither_neighbor_improves_or_moves_are_used_up(
    scores, max_moves
):
    standing, asked = run_search(scores.__getitem__, max_moves=max_moves)
    assert len(asked) == len(set(asked)) <= 3 + max_moves
    best = standing.best
    assert scores[best] >= scores[0]
    if standing.ended == "neither improves":
        assert scores[best] >= max(scores[best - 1], scores[best + 1])
        assert standing.moves < max_moves
    else:
        assert standing.moves == max_moves == abs(best)


def test_ties_keep_the_rate():
    assert stand({-1: 1.0, 0: 1.0, 1: 1.0}, max_moves=4).best == 0


def test_of_two_that_improve_alike_the_lower_rate_is_chosen():
    assert stand({-1: 2.0, 0: 1.0, 1: 2.0}, max_moves=4) == Standing(-1, 1, (-2,), None)


def test_only_what_is_not_known_is_asked_for():
    assert stand({}, max_moves=4).needed == (-1, 0, 1)
    assert stand({0: 1.0, 1: 0.0}, max_moves=4).needed == (-1,)
    assert stand({-1: 0.0, 0: 1.0, 1: 2.0}, max_moves=4) == Standing(1, 1, (2,), None)


@pytest.mark.parametrize(("exponent", "rate"), [(0, 2.5e-4), (-1, 8.33e-5), (1, 7.5e-4)])
def test_rates_are_thirds_and_triples_in_three_figures(exponent, rate):
    assert rate_of(2.5e-4, exponent) == rate
