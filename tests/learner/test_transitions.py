"""The n-step sums against a loop over single steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learner.transitions import n_step_return

REWARDS = st.floats(-1.0, 1.0, width=32)
# Zeros often: a life or a game may end anywhere in the window.
DISCOUNTS = st.sampled_from([0.0, 0.99, 1.0])
WINDOWS = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(REWARDS, min_size=n, max_size=n), st.lists(DISCOUNTS, min_size=n, max_size=n)
    )
)


def returns(rewards: list[float], discounts: list[float]) -> tuple[float, float]:
    total, carried = n_step_return(np.float32(rewards), np.float32(discounts))  # type: ignore
    return float(total), float(carried)


# The first call of each length compiles.
@settings(deadline=None)
@given(WINDOWS)
def test_the_sums_are_those_of_a_walk_through_the_window(
    window: tuple[list[float], list[float]],
) -> None:
    total, carried = 0.0, 1.0
    for reward, discount in zip(*window, strict=True):
        total += carried * reward
        carried *= discount
    assert returns(*window) == pytest.approx((total, carried), abs=1e-5)


# The first call of each length compiles.
@settings(deadline=None)
@given(WINDOWS, st.data())
def test_nothing_after_an_end_counts(
    window: tuple[list[float], list[float]], data: st.DataObject
) -> None:
    rewards, discounts = window
    end = data.draw(st.integers(0, len(rewards) - 1))
    discounts[end] = 0.0
    changed = [r if k <= end else 1.0 - r for k, r in enumerate(rewards)]
    assert returns(changed, discounts) == returns(rewards, discounts)
    assert returns(rewards, discounts)[1] == 0.0


def test_the_reward_of_the_step_that_ends_a_game_counts() -> None:
    assert returns([1.0, 1.0, 1.0], [0.5, 0.0, 0.5]) == (1.5, 0.0)


def test_padding_after_a_truncation_changes_nothing() -> None:
    assert returns([1.0, 1.0, 0.0, 0.0], [0.5, 0.5, 1.0, 1.0]) == returns([1.0, 1.0], [0.5, 0.5])


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(AssertionError):
        returns([1.0, 1.0], [0.5])
