"""What a host of a run needs in memory, where a scheduler asks before it gives one."""

import math

from launch.config import Config
from launch.replay import replay_bytes_estimate

_LEARNER_BYTES = 6 * 2**30  # beside replay: learner, evaluator, monitor, and a learner's batches
ACTOR_MIB = 1536


def learner_mib(config: Config) -> int:
    """What the learner's host needs, without actors."""
    return math.ceil((replay_bytes_estimate(config) + _LEARNER_BYTES) / 2**20)
