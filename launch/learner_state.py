"""The learner's state and its step count, on disk."""

import logging
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from learner.checkpoint import Checkpointer
from learner.step_counter import StepCounter
from learner.update import LearnerState


class Resumed(NamedTuple):
    """What a learner starts from."""

    state: LearnerState
    steps: StepCounter
    serial_state: Mapping[str, np.ndarray]  # the other parts of a serial run; else empty


def save(
    checkpointer: Checkpointer,
    state: LearnerState,
    steps: StepCounter,
    serial_state: Mapping[str, np.ndarray] | None = None,
) -> int:
    """Writes the learner's state and the global step count; returns the size in bytes."""
    counters = {"steps": steps.total, "last_inserts": steps.last_inserts}
    path = checkpointer.save(int(state.updates), state, counters, serial_state or {})
    logging.info("saved %s", path)
    return path.stat().st_size


def restore(checkpointer: Checkpointer, fresh: LearnerState) -> Resumed:
    """The newest checkpoint, or the fresh state where there is none."""
    restored = checkpointer.restore(fresh)
    if restored is None:
        return Resumed(fresh, StepCounter(), {})
    logging.info("restored %s", restored.path)
    counters = restored.counters
    return Resumed(
        jax.tree.map(jnp.asarray, restored.tree),
        StepCounter(total=counters["steps"], last_inserts=counters["last_inserts"]),
        restored.named_arrays,
    )
