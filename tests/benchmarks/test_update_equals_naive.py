"""Every speed change keeps the update what it was: the fast one equals the plain one."""

import dataclasses

import jax
import numpy as np
import pytest

from benchmarks.update_speed import make_naive
from launch import build
from launch.config import PRESETS
from launch.profile.resident_batches import random_batch


@pytest.mark.parametrize(
    ("algorithm", "optimizer"),
    [("va", "rmsprop"), ("q", "adam")],
)
def test_fast_and_plain_updates_agree_over_a_target_copy(algorithm: str, optimizer: str) -> None:
    paper = PRESETS["paper"]
    config = dataclasses.replace(
        paper,
        learner=dataclasses.replace(
            paper.learner,
            algorithm=algorithm,
            network="tiny",
            batch_size=8,
            updates_per_dispatch=1,
            target_period_updates=2,
            optimizer=optimizer,
            learning_rate=1e-3,
            optimizer_epsilon=1e-3,
        ),
    )
    fast_state, fast = build.make_learner(config)
    plain_state, naive = jax.tree.map(np.array, fast_state), make_naive(config)
    rng = np.random.default_rng(0)
    for _ in range(3):
        batch, weights = random_batch(config, rng), rng.uniform(0.5, 1.0, 8).astype(np.float32)
        fast_state, _ = fast(fast_state, batch, weights)
        plain_state = naive(plain_state, batch, weights)
    assert int(fast_state.updates) == int(plain_state.updates) == 3
    for fast_leaf, plain_leaf in zip(
        jax.tree.leaves((fast_state.params, fast_state.target_params)),
        jax.tree.leaves((plain_state.params, plain_state.target_params)),
        strict=True,
    ):
        np.testing.assert_allclose(fast_leaf, plain_leaf, atol=2e-6)
