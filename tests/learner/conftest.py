"""What holds in every test of the learner's mathematics."""

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def no_silent_broadcasting() -> Iterator[None]:
    """Arrays of different ranks never meet by accident."""
    with jax.numpy_rank_promotion("raise"):
        yield
