"""The whole update against a slow reference, on a network small enough to differentiate by hand.

The network is a table: an observation is the index of a state, the heads are its rows.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from learner.losses import (
    ALGORITHMS,
    BEHAVIOR_LOSSES,
    Heads,
    Loss,
    QLearning,
    sampled_action_loss,
)
from learner.networks import NETWORKS, Network, make_network
from learner.optimizers import optax_step
from learner.transitions import Transition, n_step_return
from learner.update import LearnerState, Update, init_state, make_update, repeat_update

NUM_STATES, NUM_ACTIONS, BATCH, RATE = 3, 4, 16, 0.5
TARGET_PERIOD = 3
NAMES = sorted(ALGORITHMS)
Tables = dict[str, Any]


def make_table() -> Network:
    def init(key: jax.Array) -> Tables:
        value, advantage, behavior = jax.random.split(key, 3)
        return {
            "value": jax.random.normal(value, (NUM_STATES,)),
            "advantage": jax.random.normal(advantage, (NUM_STATES, NUM_ACTIONS)),
            "behaviour": jax.random.normal(behavior, (NUM_STATES, NUM_ACTIONS)),
        }

    def apply(params: Any, states: jax.Array) -> Heads:
        return Heads(*(params[name][states] for name in ("value", "advantage", "behaviour")))

    return Network(init, apply, lambda params, states: params["advantage"][states])


TABLE = make_table()


@functools.cache
def update_of(name: str, behavior: str = "sampled") -> Update:
    """Jitted once for all tests."""
    return _jitted(ALGORITHMS[name], behavior)


def _jitted(loss: Loss, behavior: str = "sampled", *, online_mu: bool = False) -> Update:
    return jax.jit(
        make_update(
            TABLE,
            loss,
            optax_step(optax.sgd(RATE)),
            target_period_updates=TARGET_PERIOD,
            behavior_loss=BEHAVIOR_LOSSES[behavior],
            online_mu=online_mu,
        )
    )


def fresh_state(seed: int = 0) -> LearnerState:
    """With a target network of its own, so that mistaking one for the other shows."""
    state = init_state(TABLE, optax.sgd(RATE), jax.random.PRNGKey(seed))
    return state._replace(target_params=TABLE.init(jax.random.PRNGKey(seed + 1)))


def random_batch(seed: int = 0) -> Transition:
    rng = np.random.default_rng(seed)
    discount = rng.choice([0.0, 0.9], p=[0.1, 0.9], size=(BATCH, 5))
    return Transition(
        o_tm1=jnp.asarray(rng.integers(NUM_STATES, size=BATCH)),
        o_t=jnp.asarray(rng.integers(NUM_STATES, size=BATCH)),
        a_tm1=jnp.asarray(rng.integers(NUM_ACTIONS, size=BATCH)),
        r_t=jnp.asarray(rng.uniform(-1, 1, size=(BATCH, 5)), jnp.float32),
        discount_t=jnp.asarray(discount, jnp.float32),
        epsilon=jnp.asarray(rng.uniform(size=BATCH), jnp.float32),
        greedy_tm1=jnp.asarray(rng.integers(NUM_ACTIONS, size=BATCH)),
    )


def weights(seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).uniform(0.2, 1.0, BATCH), jnp.float32)


class Reference:
    """One update, item by item, with gradients written out."""

    def __init__(self, name: str, state: LearnerState, batch: Transition, weights: jax.Array):
        self.name = name
        self.params = {k: np.array(v, np.float64) for k, v in state.params.items()}
        self.target = {k: np.array(v, np.float64) for k, v in state.target_params.items()}
        self.gradient = {k: np.zeros_like(v) for k, v in self.params.items()}
        self.loss = self.loss_behavior = 0.0
        self.errors: list[float] = []
        self.td: list[float] = []
        self.disagreements = 0
        for i in range(BATCH):
            item = Transition(*(np.asarray(column)[i] for column in batch))
            self._add(item, float(weights[i]))

    def new_params(self) -> Tables:
        return {k: v - RATE * self.gradient[k] for k, v in self.params.items()}

    def _nu(self, params: Tables, x: int) -> np.ndarray:
        if self.name == "dueling":
            return np.full(NUM_ACTIONS, 1 / NUM_ACTIONS)
        exponentials = np.exp(params["behaviour"][x])
        return exponentials / exponentials.sum()

    def _q(self, params: Tables, x: int) -> np.ndarray:
        f = params["advantage"][x]
        return f if self.name == "q" else params["value"][x] + f - self._nu(params, x) @ f

    def _backup(self, item: Any) -> float:
        online, target = self._q(self.params, item.o_t), self._q(self.target, item.o_t)
        self.disagreements += online.argmax() != target.argmax()
        total, carried = 0.0, 1.0
        for reward, discount in zip(item.r_t, item.discount_t, strict=True):
            total, carried = total + carried * reward, carried * discount
        return total + carried * target[online.argmax()]

    def _add(self, item: Any, weight: float) -> None:
        x, a, y = item.o_tm1, item.a_tm1, self._backup(item)
        td = self._q(self.params, x)[a] - y
        v, f = self.params["value"][x], self.params["advantage"][x]
        errors = [v - y, f[a] - (y - v)] if self.name == "va" else [td]
        # Huber's loss and its derivative.
        for e in errors:
            self.loss += weight * (0.5 * e**2 if abs(e) <= 1 else abs(e) - 0.5) / BATCH
        slopes = [weight * min(max(e, -1.0), 1.0) / BATCH for e in errors]
        taken = np.eye(NUM_ACTIONS)[a]
        if self.name == "q":
            self.gradient["advantage"][x] += slopes[0] * taken
        elif self.name == "va":
            self.gradient["value"][x] += slopes[0]
            self.gradient["advantage"][x] += slopes[1] * taken
        else:
            self.gradient["value"][x] += slopes[0]
            self.gradient["advantage"][x] += slopes[0] * (taken - self._nu(self.params, x))
        if self.name in ("va", "behavior_dueling"):
            mu = self._nu(self.params, x)
            self.loss_behavior -= np.log(mu[a]) / BATCH
            self.gradient["behaviour"][x] += (mu - taken) / BATCH
        self.errors += errors
        self.td.append(td)


def assert_same(tree: Any, expected: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, tree, expected)


def assert_close(tree: Any, expected: Any) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-6), tree, expected)


@pytest.mark.parametrize("name", NAMES)
def test_an_update_is_that_of_the_slow_reference(name: str) -> None:
    for seed in range(3):
        state, batch = fresh_state(seed), random_batch(seed)
        expected = Reference(name, state, batch, weights(seed))
        # The batch must tell Huber from square, and double from plain Q-learning.
        sizes = np.abs(expected.errors)
        assert sizes.min() < 1 < sizes.max()
        assert expected.disagreements > 0
        new, result = update_of(name)(state, batch, weights(seed))
        assert_close(dict(new.params), expected.new_params())
        np.testing.assert_allclose(result.td, expected.td, atol=1e-5)
        scalars = result.scalars
        np.testing.assert_allclose(scalars["loss"], expected.loss, rtol=1e-5)
        np.testing.assert_allclose(
            scalars["loss_behaviour"], expected.loss_behavior, rtol=1e-5, atol=1e-7
        )
        np.testing.assert_allclose(scalars["td_abs"], np.abs(expected.td).mean(), rtol=1e-5)
        norm = np.sqrt(sum((g**2).sum() for g in expected.gradient.values()))
        np.testing.assert_allclose(scalars["grad_norm"], norm, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_online_mu_in_a_bootstrap_is_all_that_the_switch_changes(name: str) -> None:
    """As if the target network had had the online mu all along, and no gradient through it."""
    state, batch = fresh_state(), random_batch()
    lent = {**state.target_params, "behaviour": state.params["behaviour"]}
    expected, by_hand = update_of(name)(state._replace(target_params=lent), batch, weights())
    found, result = _jitted(ALGORITHMS[name], online_mu=True)(state, batch, weights())
    assert_same(found.params, expected.params)
    assert_same(result.td, by_hand.td)
    _, usual = update_of(name)(state, batch, weights())
    centered = name in ("va", "behavior_dueling")
    assert np.any(np.asarray(result.td != usual.td)) == centered


class UniformQ(QLearning):
    """Q-learning that evaluates the uniform policy."""

    def bootstrap_policy(self, online_t: Heads) -> jax.Array:
        return jnp.full(NUM_ACTIONS, 1 / NUM_ACTIONS)


def test_an_update_bootstraps_from_the_policy_its_algorithm_names() -> None:
    state, batch = fresh_state(), random_batch()
    _, result = _jitted(UniformQ())(state, batch, weights())
    returns, discounts = jax.vmap(n_step_return)(batch.r_t, batch.discount_t)
    bootstrap = np.asarray(state.target_params["advantage"]).mean(axis=1)[batch.o_t]
    q_tm1 = np.asarray(state.params["advantage"])[batch.o_tm1, batch.a_tm1]
    np.testing.assert_allclose(result.td, q_tm1 - (returns + discounts * bootstrap), atol=1e-5)


def test_a_fresh_target_network_is_a_copy_in_buffers_of_its_own() -> None:
    state = init_state(TABLE, optax.sgd(RATE), jax.random.PRNGKey(0))
    assert_same(state.target_params, state.params)
    assert int(state.updates) == 0
    for online, target in zip(
        jax.tree.leaves(state.params), jax.tree.leaves(state.target_params), strict=True
    ):
        # Else donating the state would give the same buffer away twice.
        assert online.unsafe_buffer_pointer() != target.unsafe_buffer_pointer()


def test_the_target_is_copied_in_every_third_update_and_in_no_other() -> None:
    state = fresh_state()
    for updates in range(1, 3 * TARGET_PERIOD + 1):
        before = state.target_params
        state, _ = update_of("va")(state, random_batch(updates), jnp.ones(BATCH))
        assert int(state.updates) == updates
        assert_same(state.target_params, before if updates % TARGET_PERIOD else state.params)
        if updates % TARGET_PERIOD:
            assert np.any(np.asarray(state.target_params["value"] != state.params["value"]))


def test_weights_scale_the_value_loss_and_leave_the_behavior_alone() -> None:
    state, batch = fresh_state(), random_batch()
    full, _ = update_of("va")(state, batch, jnp.ones(BATCH))
    half, _ = update_of("va")(state, batch, jnp.full(BATCH, 0.5))
    for head in ("value", "advantage"):
        step, half_step = full.params[head] - state.params[head], half.params[head]
        np.testing.assert_allclose(half_step - state.params[head], 0.5 * step, atol=1e-6)
    assert_same(half.params["behaviour"], full.params["behaviour"])


def test_weights_of_another_length_are_refused() -> None:
    with pytest.raises(AssertionError):
        update_of("q")(fresh_state(), random_batch(), jnp.ones(1))


def test_the_behavior_learned_from_samples_is_that_learned_from_distributions() -> None:
    """The mean step over every action the actor might have taken, weighted by its chance."""
    state, batch = fresh_state(), random_batch()
    greedy = jax.nn.one_hot(batch.greedy_tm1, NUM_ACTIONS)
    epsilon = batch.epsilon[:, None]
    acted = np.asarray(epsilon / NUM_ACTIONS + (1 - epsilon) * greedy)
    losses = [
        update_of("va")(state, _only(batch, i, a), jnp.ones(BATCH))[1].scalars["loss_behaviour"]
        for i in range(3)
        for a in range(NUM_ACTIONS)
    ]
    for i in range(3):
        sampled = np.dot(acted[i], losses[i * NUM_ACTIONS : (i + 1) * NUM_ACTIONS])
        item = _only(batch, i, action=0)
        _, whole = update_of("va", "distribution")(state, item, jnp.ones(BATCH))
        np.testing.assert_allclose(whole.scalars["loss_behaviour"], sampled, rtol=1e-5)


def _only(batch: Transition, i: int, action: int) -> Transition:
    """A batch of one item many times over, with another action taken."""
    repeated = Transition(*(jnp.repeat(column[i : i + 1], BATCH, axis=0) for column in batch))
    return repeated._replace(a_tm1=jnp.full(BATCH, action))


@pytest.mark.parametrize("name", NAMES)
def test_learning_finds_the_optimal_values_of_a_small_game(name: str) -> None:
    """Two states, two actions, known answers; action 0 is taken three times as often as 1.

    Back-ups differ by less than 1: where they do not, Huber's loss pulls V of VA-learning, and so
    its Q, away from their mean.
    """
    gamma, rewards, successors = 0.5, [[0.4, 0.0], [0.0, 0.2]], [[0, 1], [0, 1]]
    optimal = np.zeros((2, 2))
    for _ in range(60):
        for x in range(2):
            for a in range(2):
                optimal[x, a] = rewards[x][a] + gamma * optimal[successors[x][a]].max()
    pairs = [(x, a) for x in range(2) for a in (0, 0, 0, 1)] * 2
    visited, taken = (jnp.asarray(column) for column in zip(*pairs, strict=True))
    batch = Transition(
        o_tm1=visited,
        o_t=jnp.asarray([successors[i][j] for i, j in pairs]),
        a_tm1=taken,
        r_t=jnp.asarray([[rewards[i][j], 0, 0, 0, 0] for i, j in pairs], jnp.float32),
        discount_t=jnp.asarray([[gamma, 1, 1, 1, 1]] * BATCH, jnp.float32),
        epsilon=jnp.zeros(BATCH),
        greedy_tm1=taken,
    )
    state = fresh_state()
    # Actions that the game lacks are never best and never taken.
    absent = {"advantage": -10.0, "behaviour": -20.0}
    tables = {k: v.at[:, 2:].set(absent[k]) if k in absent else v for k, v in state.params.items()}
    state = state._replace(params=tables)
    for _ in range(1500):
        state, _ = update_of(name)(state, batch, jnp.ones(BATCH))
    heads = TABLE.apply(state.params, jnp.arange(2))
    q_values = jax.vmap(ALGORITHMS[name].q_values)(heads)
    np.testing.assert_allclose(q_values[:, :2], optimal, atol=1e-2)
    if ALGORITHMS[name].behavior_head:
        mu = jax.nn.softmax(heads.logits, axis=1)
        np.testing.assert_allclose(mu[:, :2], [[0.75, 0.25]] * 2, atol=1e-2)


# Through the convolutional network: what a step of one loss leaves untouched, to the last bit.


@pytest.fixture(scope="module")
def changed_modules() -> Callable[[float, float], set[str]]:
    """Tells which modules one update changes, by the weights of the value and behavior losses."""
    network = make_network(NETWORKS["tiny"], NUM_ACTIONS, value_head=True, behavior_head=True)
    update = jax.jit(
        make_update(
            network,
            ALGORITHMS["va"],
            optax_step(optax.sgd(RATE)),
            target_period_updates=100,
            # The column stands in for a weight, so that one compiled update does for all tests.
            behavior_loss=lambda logits, item: item.epsilon * sampled_action_loss(logits, item),
        )
    )
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(network.init, jax.random.PRNGKey(0))
    params = jax.tree.map(lambda s: jnp.asarray(0.1 * rng.normal(size=s.shape), s.dtype), shapes)
    state = LearnerState(params, params, optax.sgd(RATE).init(params), jnp.int32(0))
    stacks = jnp.asarray(rng.integers(0, 256, (2, BATCH, 4, 84, 84), np.uint8))
    batch = random_batch()._replace(o_tm1=stacks[0], o_t=stacks[1])

    def changed(value_weight: float, behavior_weight: float) -> set[str]:
        epsilon = jnp.full(BATCH, behavior_weight)
        new, _ = update(state, batch._replace(epsilon=epsilon), jnp.full(BATCH, value_weight))
        assert_same(new.target_params, params)
        return {
            name.split("/")[0]
            for name, leaves in params.items()
            if any(np.any(np.asarray(leaf != new.params[name][k])) for k, leaf in leaves.items())
        }

    return changed


def test_the_behavior_loss_changes_the_behavior_head_alone(
    changed_modules: Callable[[float, float], set[str]],
) -> None:
    assert changed_modules(0.0, 1.0) == {"behaviour"}


def test_the_value_loss_changes_everything_but_the_behavior_head(
    changed_modules: Callable[[float, float], set[str]],
) -> None:
    assert changed_modules(1.0, 0.0) == {"torso", "value", "advantage"}


@pytest.mark.parametrize("unroll", [False, True])
def test_repeated_updates_are_updates_one_after_the_other(unroll: bool) -> None:
    """Across a target copy, with errors of every part and the scalars of the last."""
    repeats = TARGET_PERIOD + 1
    batches = [(random_batch(seed), weights(seed)) for seed in range(repeats)]
    state, errors = fresh_state(), []
    for batch, weight in batches:
        state, result = update_of("va")(state, batch, weight)
        errors.append(result.td)
    joined = jax.tree.map(lambda *columns: jnp.concatenate(columns), *batches)
    repeated = jax.jit(repeat_update(update_of("va"), repeats, unroll=unroll))
    many, found = repeated(fresh_state(), *joined)
    assert int(many.updates) == repeats
    assert_close(dict(many.params), dict(state.params))
    assert_close(dict(many.target_params), dict(state.target_params))
    np.testing.assert_allclose(found.td, np.concatenate(errors), atol=1e-5)
    np.testing.assert_allclose(found.scalars["loss"], result.scalars["loss"], rtol=1e-5)
