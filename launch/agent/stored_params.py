"""A checkpoint of a run, for commands that play instead of learn: the newest, the best, or one."""

from typing import Any, NamedTuple

from launch import build
from launch.best_params import load_best
from launch.bounds import SEED, SHARE
from launch.config import Config
from launch.errors import InputError
from launch.learner_state import restore
from launch.run_dir import RunDir
from learner.checkpoint import Checkpointer, CheckpointError

NEWEST, BEST = "newest", "best"
_MAX_DIGITS = 18  # of a number of updates


class StoredParams(NamedTuple):
    """Parameters, and when they were saved; an earlier version kept of the best what acts alone."""

    params: Any
    updates: int | None  # of the best nobody counted them
    frames: int
    score: float | None = None  # of the best


def playing_epsilon(config: Config, asked: float | None, *, seed: int) -> float:
    """The exploration rate asked for, or the run's own; refuses an impossible rate or seed."""
    epsilon = config.evaluator.eval_epsilon if asked is None else asked
    SHARE.check(epsilon=epsilon)
    SEED.check(seed=seed)
    return epsilon


def load_params(run_dir: RunDir, config: Config, which: str) -> StoredParams:
    """The parameters of `newest`, of `best`, or of the checkpoint after so many updates.

    Refuses another text, and a run that has no such checkpoint.
    """
    updates = int(which) if which.isdecimal() and len(which) <= _MAX_DIGITS else None
    if updates is None and which not in (NEWEST, BEST):
        raise InputError(
            f"checkpoint='{which}' is neither {NEWEST} nor {BEST} nor a number of updates, as in "
            f"the names of the files in '{run_dir.checkpoints}'"
        )
    build.use_device("cpu")  # the accelerator may be a learner's, and is taken whole
    try:
        if which == BEST:
            return _load_best(run_dir, config)
        fresh, _ = build.make_learner(config)
        checkpointer = Checkpointer(run_dir.checkpoints, keep=config.learner.keep_checkpoints)
        state, steps, _ = restore(checkpointer, fresh, updates=updates)
    except CheckpointError as error:
        raise InputError(str(error)) from None
    if state is fresh:
        raise InputError(
            f"'{run_dir.checkpoints}' holds no checkpoint yet; one is written now and then "
            "(--checkpoint-seconds) and when the run stops"
        )
    return StoredParams(state.params, int(state.updates), config.frames_of(steps.total))


def _load_best(run_dir: RunDir, config: Config) -> StoredParams:
    best = load_best(run_dir.best, build.empty_params(config))
    if best is None:
        raise InputError(
            f"'{run_dir.root}' has no best checkpoint yet; the evaluator of a run writes one with "
            f"its first evaluation; use --checkpoint {NEWEST}"
        )
    return StoredParams(best.params, None, best.frames, best.score)
