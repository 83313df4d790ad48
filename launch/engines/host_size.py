"""What a host of a run asks a scheduler for in memory.

More than `launch.memory_need` says on purpose. That is the least that was seen, so that nothing is
refused which could have worked. A scheduler kills what takes more than was asked for, so this is
above the most that was seen: a learner with batches of 512 took 2.6 GiB, an actor host with one
actor 0.4.
"""

import math

from launch.config import Config
from launch.replay import replay_bytes_estimate

_LEARNER_BYTES = 6 * 2**30  # beside replay: learner, evaluator, monitor, and a learner's batches
ACTOR_MIB = 1536


def learner_mib(config: Config) -> int:
    """What the learner's host needs, without actors."""
    return math.ceil((replay_bytes_estimate(config) + _LEARNER_BYTES) / 2**20)
