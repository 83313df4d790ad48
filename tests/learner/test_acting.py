"""What actors hold: the torso and the advantage head, sent as a flat vector."""

import jax
import numpy as np
import pytest

from learner import acting
from learner.losses import ALGORITHMS
from learner.networks import NETWORKS, Network, make_network

NUM_ACTIONS = 5


@pytest.fixture(scope="module")
def network() -> Network:
    loss = ALGORITHMS["va"]
    return make_network(
        NETWORKS["tiny"],
        NUM_ACTIONS,
        value_head=loss.value_head,
        behavior_head=loss.behavior_head,
    )


@pytest.fixture(scope="module")
def params(network: Network) -> dict:
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(network.init, jax.random.PRNGKey(0))
    return jax.tree.map(lambda s: rng.normal(size=s.shape).astype(s.dtype), shapes)


def test_a_flat_vector_comes_back_as_the_acting_parameters(network: Network, params: dict) -> None:
    flat = np.asarray(acting.flatten_acting(params))
    assert flat.dtype == np.float32
    assert flat.shape == (acting.num_acting_values(network),)
    found, expected = acting.make_unflatten(network)(flat), acting.acting_params(params)
    assert {name.split("/")[0] for name in found} == {"torso", "advantage"}
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_greedy_actions_are_the_best_of_q(network: Network, params: dict) -> None:
    stacks = np.random.default_rng(1).integers(0, 256, (6, 4, 84, 84), np.uint8)
    q_values = jax.vmap(ALGORITHMS["va"].q_values)(network.apply(params, stacks))
    chosen = acting.make_greedy(network)(acting.acting_params(params), stacks)
    assert chosen.dtype == np.int32
    np.testing.assert_array_equal(chosen, q_values.argmax(axis=1))
    assert len(set(chosen.tolist())) > 1
