"""The parameters that scored best in a run's own evaluations: best/params.npz in its folder.

They are those that the evaluator played with, all heads included; earlier versions kept torso and
advantage head only. The file is replaced as a whole, never by one that scored less, and outlives a
resume.
"""

import logging
import pathlib
from typing import Any, NamedTuple

import numpy as np

from launch.stored.params_file import params_file
from learner.acting import acting_params
from learner.archive import DAMAGE
from learner.checkpoint import (
    CheckpointError,
    read_checkpoint,
    remove_unfinished,
    write_checkpoint,
)


class Best(NamedTuple):
    """Parameters, when they were published, and their mean return."""

    params: Any
    frames: int
    score: float


class BestKeeper:
    """Writes what is offered if nothing before it scored more; of equals, the newest is kept."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._best_score: float | None = None
        self._has_looked = False

    def offer(self, params: Any, *, frames: int, score: float) -> None:
        """Keeps the parameters if they are the best so far."""
        if not self._has_looked:
            self._look_for_earlier(params)
        if self._best_score is not None and score < self._best_score:
            return
        write_checkpoint(params_file(self._folder), _tree(params, score), {"frames": frames})
        self._best_score = score

    def _look_for_earlier(self, like: Any) -> None:
        """What an earlier start of the run, or of this process, has kept."""
        remove_unfinished(self._folder)
        try:
            earlier = load_best(self._folder, like)
            self._best_score = None if earlier is None else earlier.score
        except CheckpointError as error:
            logging.error("%s; the next evaluation replaces it", error)
        self._has_looked = True


def load_best(folder: pathlib.Path, like: Any) -> Best | None:
    """The best so far, shaped as `like` or as what acts of it; None before there is one.

    Raises CheckpointError for a file that cannot be used.
    """
    path = params_file(folder)
    try:
        try:
            stored = read_checkpoint(path, _tree(like, 0.0))
        except CheckpointError:
            stored = read_checkpoint(path, _tree(acting_params(like), 0.0))
        return Best(stored.tree["params"], stored.counters["frames"], float(stored.tree["score"]))
    except FileNotFoundError:
        return None
    except DAMAGE as error:
        raise CheckpointError(f"{path} is damaged ({error!r})") from None


def _tree(params: Any, score: float) -> dict[str, Any]:
    return {"params": params, "score": np.float64(score)}
