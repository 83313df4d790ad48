"""A measurement in a process of its own: a device it takes is free again when it is done."""

import multiprocessing
from collections.abc import Callable
from typing import TypeVar

_SECONDS = 900.0  # bounds a hang
_Result = TypeVar("_Result")


def in_own_process(measure: Callable[..., _Result], *args: object) -> _Result:
    """What the function returns, or raises, there; both have to be picklable."""
    # Not forked: a process that has started JAX must not be.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(measure, args).get(_SECONDS)
        except multiprocessing.TimeoutError:
            raise TimeoutError(f"no measurement within {_SECONDS:.0f} s") from None
