"""The newest checkpoint of a run, for commands that play instead of learn."""

from typing import Any, NamedTuple

from launch import build
from launch.bounds import SEED, SHARE
from launch.config import Config
from launch.errors import InputError
from launch.learner_state import restore
from launch.run_dir import RunDir
from learner.checkpoint import Checkpointer, CheckpointError


class NewestParams(NamedTuple):
    """Parameters of all heads, and when they were saved."""

    params: Any
    updates: int
    frames: int


def playing_epsilon(config: Config, asked: float | None, *, seed: int) -> float:
    """The exploration rate asked for, or the run's own; refuses an impossible rate or seed."""
    epsilon = config.evaluator.eval_epsilon if asked is None else asked
    SHARE.check(epsilon=epsilon)
    SEED.check(seed=seed)
    return epsilon


def load_newest(run_dir: RunDir, config: Config) -> NewestParams:
    """The parameters of the newest checkpoint; refuses a run without a usable one."""
    build.use_device("cpu")  # the accelerator may be a learner's, and is taken whole
    fresh, _ = build.make_learner(config)
    checkpointer = Checkpointer(run_dir.checkpoints, keep=config.learner.keep_checkpoints)
    try:
        state, steps, _ = restore(checkpointer, fresh)
    except CheckpointError as error:
        raise InputError(str(error)) from None
    if state is fresh:
        raise InputError(
            f"'{run_dir.checkpoints}' holds no checkpoint yet; one is written now and then "
            "(--checkpoint-seconds) and when the run stops"
        )
    return NewestParams(state.params, int(state.updates), config.frames_of(steps.total))
