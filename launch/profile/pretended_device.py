"""An update that occupies a pretended device for a while, and no core.

As on an accelerator, a call returns at once, calls queue in order, and results are ready when the
device has come to them. Parameters stay as they are; every result is one, so that nothing diverges
and every priority can be sent.
"""

import collections
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from launch import build
from launch.config import Config
from learner.transitions import Transition
from learner.update import LearnerState, Update, UpdateResult

# XLA lets the host run ahead of a GPU by so many calls; then a call waits.
_CALLS_AHEAD = 32


def pretended_learner(config: Config, update_ms: float) -> tuple[LearnerState, Update]:
    """As `build.make_learner`, with an update that only takes its time."""
    state, update = build.make_learner(config)
    call_seconds = update_ms / 1e3 * config.learner.updates_per_dispatch
    return state, PretendedDevice(update, call_seconds=call_seconds)


class Pending:
    """An array that is ready at some time; whoever needs it sleeps until then."""

    def __init__(self, value: np.ndarray, wait: Callable[[], None]):
        self._value, self._wait = value, wait

    def block_until_ready(self) -> "Pending":
        """As of a JAX array."""
        self._wait()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        self._wait()
        return np.array(self._value, dtype)


class PretendedDevice:
    """An `Update` of the same signature as the one whose place it takes."""

    def __init__(
        self,
        update: Update,
        *,
        call_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        """`update` is asked for the shapes of its results, and never called."""
        self._update, self._call_seconds = update, call_seconds
        self._clock, self._sleep = clock, sleep
        self._shapes: UpdateResult | None = None
        self._ready_at: collections.deque[float] = collections.deque(maxlen=_CALLS_AHEAD)

    def __call__(
        self, state: LearnerState, batch: Transition, weights: jax.Array
    ) -> tuple[LearnerState, UpdateResult]:
        """Queues one call."""
        if self._shapes is None:
            self._shapes = jax.eval_shape(self._update, state, batch, weights)[1]
        if len(self._ready_at) == _CALLS_AHEAD:
            self._wait_until(self._ready_at[0])
        begins_at = max([self._clock(), *list(self._ready_at)[-1:]])
        ready_at = begins_at + self._call_seconds
        self._ready_at.append(ready_at)
        result = jax.tree.map(
            lambda shape: Pending(
                np.ones(shape.shape, shape.dtype), lambda: self._wait_until(ready_at)
            ),
            self._shapes,
        )
        return state, result

    def _wait_until(self, ready_at: float) -> None:
        while (left := ready_at - self._clock()) > 0.0:
            self._sleep(left)
