"""The run's one seed, and what every role, index and restart derives from it."""

import os

import numpy as np

from launch.config import Config

# How often this node was started before; the supervisor sets it.
RESTART_VARIABLE = "VANTAGE_RESTART"
_ROLE_KEYS = {"learner": 0, "actor": 1, "evaluator": 2, "sampler": 3}


def seed_for(config: Config, role: str, index: int = 0, restart: int = 0) -> np.random.SeedSequence:
    """A seed sequence of its own for every role, index and restart."""
    return np.random.SeedSequence(config.seed, spawn_key=(_ROLE_KEYS[role], index, restart))


def node_seed(config: Config, role: str, index: int = 0) -> np.random.SeedSequence:
    """The seed of the node in this process; started again, it does not play the same games."""
    return seed_for(config, role, index, int(os.environ.get(RESTART_VARIABLE, "0")))


def environment_seed(seeds: np.random.SeedSequence) -> int:
    """A seed the emulators take; game i of a batch adds i to it, hence the room below 2**31."""
    return int(seeds.generate_state(1)[0]) % 2**30
