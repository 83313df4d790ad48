"""The learner's state on disk, and how often its loop does what is not an update."""

import logging
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from launch.config import Config
from learner.checkpoint import Checkpointer
from learner.loop import Periods
from learner.step_counter import StepCounter
from learner.update import LearnerState


def periods_of(config: Config) -> Periods:
    """How often the learner does what is not an update."""
    return Periods(
        total_steps=config.total_steps,
        warmup_steps=config.replay.warmup_steps,
        publish_updates=config.learner.publish_period_updates,
        updates_per_batch=config.learner.updates_per_dispatch,
        report_seconds=config.report_seconds,
        save_seconds=config.learner.checkpoint_seconds,
    )


# What a serial run stores beside the learner: arrays by part and name.
Parts = Mapping[str, Mapping[str, np.ndarray]]


class Resumed(NamedTuple):
    """What a learner starts from."""

    state: LearnerState
    steps: StepCounter
    beside: Mapping[str, np.ndarray]  # what a serial run stored with it; empty otherwise


def save(
    checkpointer: Checkpointer,
    state: LearnerState,
    steps: StepCounter,
    beside: Mapping[str, np.ndarray] | None = None,
) -> int:
    """Writes the learner's state and the global step count; returns the size in bytes."""
    counters = {"steps": steps.total, "last_inserts": steps.last_inserts}
    path = checkpointer.save(int(state.updates), state, counters, beside or {})
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
        restored.beside,
    )


def join_parts(parts: Parts) -> dict[str, np.ndarray]:
    """Arrays by `part/name`."""
    return {f"{part}/{name}": a for part, arrays in parts.items() for name, a in arrays.items()}


def split_parts(joined: Mapping[str, np.ndarray]) -> Parts:
    """The inverse of `join_parts`."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for key, array in joined.items():
        part, _, name = key.partition("/")
        parts.setdefault(part, {})[name] = array
    return parts
