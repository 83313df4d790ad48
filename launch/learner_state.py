"""The learner's state on disk, and how often its loop does what is not an update."""

import logging

import jax
import jax.numpy as jnp

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
        report_seconds=config.report_seconds,
        save_seconds=config.learner.checkpoint_seconds,
    )


def save(checkpointer: Checkpointer, state: LearnerState, steps: StepCounter) -> None:
    """Writes the learner's state and the global step count."""
    counters = {"steps": steps.total, "last_inserts": steps.last_inserts}
    path = checkpointer.save(int(state.updates), state, counters)
    logging.info("saved %s", path)


def restore(checkpointer: Checkpointer, fresh: LearnerState) -> tuple[LearnerState, StepCounter]:
    """The newest checkpoint, or the fresh state where there is none."""
    restored = checkpointer.restore(fresh)
    if restored is None:
        return fresh, StepCounter()
    logging.info("restored %s", restored.path)
    counters = restored.counters
    return (
        jax.tree.map(jnp.asarray, restored.tree),
        StepCounter(total=counters["steps"], last_inserts=counters["last_inserts"]),
    )
