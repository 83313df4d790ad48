"""What holds in every test of the tabular study."""

from collections.abc import Iterator

import jax
import pytest

from tabular.precision import double_precision


@pytest.fixture(autouse=True)
def exact_arithmetic() -> Iterator[None]:
    """64 bits, as in the study, and arrays of different ranks never meet by accident."""
    with double_precision(), jax.numpy_rank_promotion("raise"):
        yield
