"""The learner's state and its step count, on disk: finite, or not at all."""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from launch.errors import DIVERGED, GiveUpError
from learner.checkpoint import Checkpointer, CheckpointError
from learner.divergence import DivergedError, FiniteGuard
from learner.step_counter import StepCounter
from learner.update import LearnerState


class Resumed(NamedTuple):
    """What a learner starts from."""

    state: LearnerState
    steps: StepCounter
    serial_state: Mapping[str, np.ndarray]  # the other parts of a serial run; else empty


def save(
    checkpointer: Checkpointer,
    guard: FiniteGuard,
    state: LearnerState,
    steps: StepCounter,
    serial_state: Mapping[str, np.ndarray] | None = None,
) -> int:
    """Writes the learner's state and the global step count; returns the size in bytes."""
    on_host = jax.device_get(state)
    updates = int(on_host.updates)
    guard.check(updates, on_host)
    counters = {"steps": steps.total, "last_inserts": steps.last_inserts}
    path = checkpointer.save(updates, on_host, counters, serial_state or {})
    logging.info("saved %s", path)
    return path.stat().st_size


def restore(
    checkpointer: Checkpointer,
    fresh: LearnerState,
    *,
    serial_state: bool = False,
    updates: int | None = None,
) -> Resumed:
    """The newest checkpoint, or that after `updates`; the fresh state where there is none."""
    restored = checkpointer.restore(fresh, named_arrays=serial_state, step=updates)
    if restored is None:
        return Resumed(fresh, StepCounter(), {})
    logging.info("restored %s", restored.path)
    counters = restored.counters
    if missing := {"steps", "last_inserts"} - counters.keys():
        raise CheckpointError(f"{restored.path} has no {min(missing)}; restore a copy of it")
    return Resumed(
        jax.tree.map(jnp.asarray, restored.tree),
        StepCounter(total=counters["steps"], last_inserts=counters["last_inserts"]),
        restored.named_arrays,
    )


def saved_steps(checkpointer: Checkpointer) -> int:
    """The global step count of the newest checkpoint that can be read; 0 without one."""
    counters = checkpointer.newest_counters()
    return 0 if counters is None else counters.get("steps", 0)


@contextlib.contextmanager
def gives_up_when_diverged(guard: FiniteGuard, *, learning_rate: float) -> Iterator[None]:
    """Turns divergence into a failure that no restart answers: it would only come again."""
    try:
        yield
    except DivergedError as error:
        finite = "no finite ones were seen"
        if guard.last_finite is not None:
            finite = f"those of update {guard.last_finite:,} were finite"
        raise GiveUpError(
            f"{DIVERGED}: {error}; {finite}, and so is every checkpoint; start a new run "
            f"with a --learning-rate below {learning_rate:g}, or with --max-grad-norm"
        ) from None
