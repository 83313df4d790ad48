"""Batches of random experience on the device, of the shapes a config asks for."""

import jax
import jax.numpy as jnp
import numpy as np

from actors.observation import OBSERVATION_SHAPE
from launch import build
from launch.config import Config
from learner.transitions import Transition

_BATCHES = 4  # so that no batch stays in the cache from one update to the next


def resident_batches(config: Config) -> list[tuple[Transition, jax.Array]]:
    """A few batches with their weights, on the device."""
    rng = np.random.default_rng(0)
    weights = jnp.ones(config.sampled_transitions)
    return [(jax.device_put(random_batch(config, rng)), weights) for _ in range(_BATCHES)]


def random_batch(config: Config, rng: np.random.Generator) -> Transition:
    """Noise in every column; what an update costs does not depend on what it is told."""
    environment, learner = config.environment, config.learner
    size, n_step = config.sampled_transitions, learner.n_step
    actions = build.num_actions(environment.game, environment.full_action_set)
    return Transition(
        o_tm1=rng.integers(0, 256, (size, *OBSERVATION_SHAPE), np.uint8),
        o_t=rng.integers(0, 256, (size, *OBSERVATION_SHAPE), np.uint8),
        a_tm1=rng.integers(0, actions, size, np.int32),
        r_t=rng.choice(np.array([-1, 0, 1], np.float32), (size, n_step)),
        discount_t=np.full((size, n_step), learner.gamma, np.float32),
        epsilon=np.full(size, 0.1, np.float32),
        greedy_tm1=rng.integers(0, actions, size, np.int32),
    )
