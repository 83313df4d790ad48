"""What a player sees: sizes of a frame and of a stack of them.

Whoever needs only the sizes imports this, and no emulator. The learner imports nothing of the
actors: `learner.networks` has its own copy of the shape, and a test holds the two equal.
"""

from typing import NamedTuple

import numpy as np

FRAME_SHAPE = (84, 84)
STACK_SIZE = 4
OBSERVATION_SHAPE = (STACK_SIZE, *FRAME_SHAPE)


class Observation(NamedTuple):
    """A stack of frames, and the true score of the step that led there."""

    stack: np.ndarray  # uint8 [4, 84, 84], oldest frame first
    score: np.ndarray  # float32 []
