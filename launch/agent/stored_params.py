"""A checkpoint of a run, for those who play instead of learn: the newest, the best, or one."""

import contextlib
from typing import Any, NamedTuple

from launch import build
from launch.config import Config
from launch.errors import InputError
from launch.run_dir import RunDir
from launch.stored.best_params import load_best
from launch.stored.learner_state import restore
from learner.checkpoint import Checkpointer, CheckpointError

NEWEST, BEST = "newest", "best"
_MAX_DIGITS = 18  # of a number of updates


class StoredParams(NamedTuple):
    """Parameters, and when they were saved; an earlier version kept of the best what acts alone."""

    params: Any
    updates: int | None  # of the best nobody counted them
    frames: int


def load_params(run_dir: RunDir, config: Config, which: str) -> StoredParams:
    """The parameters of `newest`, of `best`, or of a checkpoint, by its updates.

    Where a folder has its best only, as a shipped agent has, that is the newest. Refuses another
    text, and a run that has no such checkpoint.
    """
    updates = int(which) if which.isdecimal() and len(which) <= _MAX_DIGITS else None
    if updates is None and which not in (NEWEST, BEST):
        raise InputError(
            f"checkpoint='{which}' is neither {NEWEST} nor {BEST} nor a number of updates, as in "
            f"the names of the files in '{run_dir.checkpoints}'"
        )
    # The accelerator may be a learner's, and is taken whole. A script that has taken it before
    # keeps it, and the agent computes there too.
    with contextlib.suppress(InputError):
        build.use_device("cpu")
    try:
        newest = None if which == BEST else _load_checkpoint(run_dir, config, updates)
        found = _load_best(run_dir, config) if newest is None else newest
    except CheckpointError as error:
        raise InputError(str(error)) from None
    if found is not None:
        return found
    if which == BEST:
        raise InputError(
            f"'{run_dir.root}' has no best checkpoint yet; the evaluator of a run writes one with "
            f"its first evaluation; use --checkpoint {NEWEST}"
        )
    raise InputError(
        f"'{run_dir.checkpoints}' holds no checkpoint yet; one is written now and then "
        "(--checkpoint-seconds) and when the run stops"
    )


def _load_checkpoint(run_dir: RunDir, config: Config, updates: int | None) -> StoredParams | None:
    checkpointer = Checkpointer(run_dir.checkpoints, keep=config.learner.keep_checkpoints)
    fresh, _ = build.make_learner(config)
    state, steps, _ = restore(checkpointer, fresh, updates=updates)
    if state is fresh:
        return None
    return StoredParams(state.params, int(state.updates), config.frames_of(steps.total))


def _load_best(run_dir: RunDir, config: Config) -> StoredParams | None:
    best = load_best(run_dir.best, build.empty_params(config))
    return None if best is None else StoredParams(best.params, None, best.frames)
