"""From a config to components that fit each other."""

import dataclasses

import jax
import numpy as np
import pytest

from actors import observation
from launch import build
from launch.profile.resident_batches import random_batch
from learner import networks
from learner.backend import PLAIN
from tests.launch.tiny_run import tiny_config


def test_both_backends_make_the_same_repeated_update() -> None:
    """Two updates in one call: a loop on an accelerator, one after the other on CPU."""
    config = tiny_config()
    learner = dataclasses.replace(
        config.learner, updates_per_dispatch=2, batch_size=4, optimizer_epsilon=1e-3
    )
    config = dataclasses.replace(config, learner=learner)
    batch, weights = random_batch(config, np.random.default_rng(0)), np.ones(8, np.float32)
    found = []
    for backend in (None, PLAIN):
        state, update = build.make_learner(config, backend)
        loops = update.lower(state, batch, weights).as_text().count("stablehlo.while")  # type: ignore[attr-defined]
        assert loops == (0 if backend is None else 1)
        found.append(update(state, batch, weights))
    assert int(found[0][0].updates) == 2
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-6), *found)


def test_the_flag_of_mu_in_a_bootstrap_reaches_the_update() -> None:
    config = tiny_config()
    lowered = []
    for mu in ("target", "online"):
        learner = dataclasses.replace(config.learner, bootstrap_mu=mu, updates_per_dispatch=1)
        one = dataclasses.replace(config, learner=learner)
        state, update = build.make_learner(one, PLAIN)
        size = learner.batch_size
        batch = random_batch(one, np.random.default_rng(0))
        lowered.append(update.lower(state, batch, np.ones(size, np.float32)).as_text())  # type: ignore[attr-defined]
    assert lowered[0] != lowered[1]


def test_networks_take_the_stacks_that_the_environment_shows() -> None:
    """Said twice, because `actors` and `learner` do not import each other."""
    assert networks.OBSERVATION_SHAPE == observation.OBSERVATION_SHAPE


@pytest.mark.parametrize("training", [True, False])
def test_a_run_is_evaluated_with_the_sticky_actions_it_is_trained_with(training) -> None:
    config = tiny_config()
    shown = []
    for sticky in (0.0, 0.5):
        environment = dataclasses.replace(config.environment, sticky_actions=sticky)
        games = build.make_environment(
            dataclasses.replace(config, environment=environment),
            num_envs=1,
            seed=3,
            training=training,
        )
        games.reset()
        for step in range(30):
            timestep = games.step(np.array([2 + step % 2]))
        games.close()
        shown.append(timestep.observation.stack)
    assert not np.array_equal(*shown)
