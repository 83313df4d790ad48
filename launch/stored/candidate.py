"""The parameters that are to be scored next, with all their heads: candidate/params.npz of a run.

The actors' broadcast has what acting needs and no more. The learner therefore puts all of it here
when an evaluation is due, before it publishes that version; the evaluator scores this, and can keep
it whole.
"""

import logging
import pathlib
from typing import Any, NamedTuple

from actors.evaluate import next_evaluation
from launch.stored.params_file import params_file
from learner.archive import DAMAGE
from learner.checkpoint import CheckpointError, read_checkpoint, remove_unfinished, write_checkpoint


class Candidate(NamedTuple):
    """Whole parameters, and the global frames at which they were published."""

    params: Any
    frames: int


class CandidateWriter:
    """The learner's side: one file, replaced as a whole at every evaluation that is due."""

    def __init__(self, folder: pathlib.Path, *, period_frames: int):
        self._folder, self._period_frames = folder, period_frames
        self._due_frames = 0
        remove_unfinished(folder)

    def is_due(self, frames: int, *, finished: bool) -> bool:
        """Whether the version published at these global frames is one that will be scored."""
        return finished or frames >= self._due_frames

    def write(self, params: Any, frames: int) -> None:
        """Puts them there; on a full disk the evaluator does without, and learning goes on."""
        try:
            write_checkpoint(params_file(self._folder), {"params": params}, {"frames": frames})
        except OSError as error:
            logging.error("%s cannot be written: %s", params_file(self._folder), error)
        self._due_frames = next_evaluation(frames, self._period_frames)


def load_candidate(folder: pathlib.Path, like: Any) -> Candidate | None:
    """What lies there, shaped as `like`; None, and a line in the log, if it cannot be used."""
    path = params_file(folder)
    try:
        stored = read_checkpoint(path, {"params": like})
        return Candidate(stored.tree["params"], stored.counters["frames"])
    except FileNotFoundError:
        return None
    except (CheckpointError, *DAMAGE) as error:
        logging.error("%s cannot be used: %s", path, error)
        return None
