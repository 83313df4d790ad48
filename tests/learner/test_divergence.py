"""What counts as diverged, and what is remembered of better times."""

import jax.numpy as jnp
import numpy as np
import pytest

from learner.divergence import DivergedError, FiniteGuard, all_finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_found_wherever_it_is(bad) -> None:
    values = {"w": np.ones((3, 4), np.float32), "b": (jnp.zeros(2), np.int32(7))}
    assert all_finite(values)
    values["w"][2, 3] = bad
    assert not all_finite(values)
    assert not all_finite({"b": (jnp.array([0.0, bad]), np.int32(7))})


def test_the_largest_finite_number_passes() -> None:
    assert all_finite(np.array([np.finfo(np.float32).max, np.finfo(np.float32).tiny], np.float32))


def test_the_guard_knows_the_newest_update_with_finite_values() -> None:
    guard = FiniteGuard()
    assert guard.last_finite is None
    guard.check(20, np.ones(2))
    guard.check(10, np.ones(2))  # a checkpoint that was longer on its way than what is published
    with pytest.raises(DivergedError, match="after update 1,030"):
        guard.check(1030, np.array([1.0, np.nan]))
    assert guard.last_finite == 20
