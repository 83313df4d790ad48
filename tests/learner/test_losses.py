"""The four algorithms on one transition: against the paper's equations, and against each other.

The reference is plain NumPy in the paper's notation: `v`, `f` and `mu` at x, `v_n`, `f_n` and
`mu_n` of the target network at x_n.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.losses import (
    ALGORITHMS,
    Heads,
    Loss,
    QLearning,
    backup_target,
    centered_q,
    greedy_policy,
)

NUM_ACTIONS = 4
NAMES = sorted(ALGORITHMS)


def random_heads(rng: np.random.Generator) -> Heads:
    value, advantage, logits = rng.normal(), rng.normal(size=4), rng.normal(size=4)
    return Heads(*(jnp.asarray(x, jnp.float32) for x in (value, advantage, logits)))


def numpy_heads(heads: Heads) -> tuple[float, np.ndarray, np.ndarray]:
    """V, f and mu in double precision."""
    weights = np.exp(np.asarray(heads.logits, np.float64))
    return float(heads.value), np.asarray(heads.advantage, np.float64), weights / weights.sum()


def reference_backup(name: str, target: Heads, policy: np.ndarray, r: float, d: float) -> float:
    """The back-up target: Eqn 2 (q), Section 4 (dueling), Eqn 5 (va), with n-step sums."""
    v_n, f_n, mu_n = numpy_heads(target)
    total = 0.0
    for b in range(NUM_ACTIONS):
        if name == "q":
            total += policy[b] * f_n[b]
        elif name == "dueling":
            total += policy[b] * (v_n + f_n[b] - f_n.mean())
        elif name == "behavior_dueling":
            total += policy[b] * (v_n + f_n[b] - sum(mu_n[c] * f_n[c] for c in range(NUM_ACTIONS)))
        else:
            # Q-hat with the raw Q = V + A; the advantage of mu is taken off below.
            total += policy[b] * (v_n + f_n[b])
    backup = r + d * total
    if name == "va":
        backup -= d * sum(mu_n[c] * f_n[c] for c in range(NUM_ACTIONS))
    return backup


def reference_errors(name: str, online: Heads, a: int, backup: float) -> list[float]:
    """What is squared (or Hubered): Eqn 6 for va with the online V as baseline, else Eqn 9."""
    v, f, mu = numpy_heads(online)
    if name == "q":
        return [f[a] - backup]
    if name == "dueling":
        return [v + f[a] - f.mean() - backup]
    if name == "behavior_dueling":
        return [v + f[a] - mu @ f - backup]
    return [v - backup, f[a] - (backup - v)]


@pytest.mark.parametrize("name", NAMES)
def test_targets_and_errors_are_those_of_the_paper(name: str) -> None:
    rng, loss = np.random.default_rng(0), ALGORITHMS[name]
    for _ in range(10):
        online, target = random_heads(rng), random_heads(rng)
        policy, r, d = rng.dirichlet(np.ones(NUM_ACTIONS)), rng.normal(), rng.uniform()
        a = int(rng.integers(NUM_ACTIONS))
        backup = backup_target(
            loss, target, jnp.asarray(policy, jnp.float32), jnp.float32(r), jnp.float32(d)
        )
        expected_backup = reference_backup(name, target, policy, r, d)
        np.testing.assert_allclose(backup, expected_backup, atol=1e-5)
        errors = loss.errors(online, jnp.int32(a), backup)
        expected_errors = reference_errors(name, online, a, expected_backup)
        np.testing.assert_allclose(errors.regressed, expected_errors, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_td_error_is_that_of_the_q_values_acted_on(name: str) -> None:
    loss, online = ALGORITHMS[name], random_heads(np.random.default_rng(1))
    for a in range(NUM_ACTIONS):
        td = loss.errors(online, jnp.int32(a), jnp.float32(0.3)).td
        np.testing.assert_allclose(td, loss.q_values(online)[a] - 0.3, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_greedy_action_of_the_advantage_head_is_that_of_q(name: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        heads = random_heads(rng)
        policy = greedy_policy(heads.advantage)
        assert float(policy.sum()) == 1.0
        assert int(policy.argmax()) == int(ALGORITHMS[name].q_values(heads).argmax())


def test_centered_advantages_have_zero_mean_under_mu() -> None:
    heads = random_heads(np.random.default_rng(3))
    mu = numpy_heads(heads)[2]
    np.testing.assert_allclose(mu @ np.asarray(centered_q(heads)), heads.value, atol=1e-6)


# Who gets a gradient, and who gets exactly none.


def gradients(loss: Loss, online: Heads, a: int, component: int) -> Heads:
    """The gradient of one regressed error with respect to the online heads."""
    return jax.grad(lambda h: loss.errors(h, jnp.int32(a), jnp.float32(0.7)).regressed[component])(
        online
    )


@pytest.mark.parametrize("name", NAMES)
def test_no_value_error_reaches_the_behavior_head(name: str) -> None:
    loss, online = ALGORITHMS[name], random_heads(np.random.default_rng(4))
    for component in range(2 if name == "va" else 1):
        gradient = gradients(loss, online, a=1, component=component)
        np.testing.assert_array_equal(gradient.logits, np.zeros(NUM_ACTIONS))
        assert any(np.any(leaf) for leaf in gradient)


def test_in_va_each_error_reaches_its_own_head_alone() -> None:
    online = random_heads(np.random.default_rng(5))
    of_value = gradients(ALGORITHMS["va"], online, a=2, component=0)
    assert of_value.value == 1.0
    np.testing.assert_array_equal(of_value.advantage, np.zeros(NUM_ACTIONS))
    of_advantage = gradients(ALGORITHMS["va"], online, a=2, component=1)
    assert of_advantage.value == 0.0
    np.testing.assert_array_equal(of_advantage.advantage, [0.0, 0.0, 1.0, 0.0])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_flows_through_the_back_up_target(name: str) -> None:
    target = random_heads(np.random.default_rng(6))

    def backup(target: Heads, advantage_t: jax.Array) -> jax.Array:
        policy = greedy_policy(advantage_t)
        return backup_target(ALGORITHMS[name], target, policy, jnp.float32(1), jnp.float32(0.9))

    for leaf in jax.tree.leaves(jax.grad(backup, argnums=(0, 1))(target, target.advantage)):
        np.testing.assert_array_equal(leaf, np.zeros_like(leaf))


# Algorithms that must agree do.


def test_behavior_dueling_with_uniform_mu_is_dueling() -> None:
    rng = np.random.default_rng(7)
    online = random_heads(rng)._replace(logits=jnp.zeros(NUM_ACTIONS))
    target = random_heads(rng)._replace(logits=jnp.zeros(NUM_ACTIONS))
    policy = greedy_policy(online.advantage)

    def squared(name: str, online: Heads) -> jax.Array:
        loss = ALGORITHMS[name]
        y = backup_target(loss, target, policy, jnp.float32(0.5), jnp.float32(0.9))
        return jnp.sum(loss.errors(online, jnp.int32(3), y).regressed ** 2)

    value, gradient = jax.value_and_grad(lambda h: squared("behavior_dueling", h))(online)
    expected_value, expected_gradient = jax.value_and_grad(lambda h: squared("dueling", h))(online)
    assert value == expected_value
    jax.tree.map(np.testing.assert_array_equal, gradient, expected_gradient)
    # With a mean written out, too.
    centered = online.value + online.advantage - online.advantage.mean()
    np.testing.assert_allclose(ALGORITHMS["dueling"].q_values(online), centered, atol=1e-6)


def expected_gradient(name: str, online: Heads, backups: np.ndarray) -> Heads:
    """The mean over a ~ mu of the gradient of the squared loss; `backups` is y of each action."""
    mu = numpy_heads(online)[2]
    loss = ALGORITHMS[name]

    def squared(h: Heads, a: int) -> jax.Array:
        return 0.5 * jnp.sum(loss.errors(h, jnp.int32(a), jnp.float32(backups[a])).regressed ** 2)

    each = [jax.grad(squared)(online, a) for a in range(NUM_ACTIONS)]
    return jax.tree.map(
        lambda *g: sum(m * np.asarray(x) for m, x in zip(mu, g, strict=True)), *each
    )


def test_va_and_behavior_dueling_share_their_expected_value_gradient() -> None:
    """The first lemma of the paper's Appendix D; centring with another policy breaks it."""
    rng = np.random.default_rng(8)
    online, backups = random_heads(rng), rng.normal(size=NUM_ACTIONS)
    va = expected_gradient("va", online, backups)
    np.testing.assert_allclose(
        expected_gradient("behavior_dueling", online, backups).value, va.value, atol=1e-6
    )
    assert abs(expected_gradient("dueling", online, backups).value - va.value) > 0.01


def test_expected_advantage_gradients_are_those_of_appendix_d() -> None:
    rng = np.random.default_rng(9)
    online, backups = random_heads(rng), rng.normal(size=NUM_ACTIONS)
    v, f, mu = numpy_heads(online)
    delta = v + f - mu @ f - backups
    np.testing.assert_allclose(
        expected_gradient("behavior_dueling", online, backups).advantage,
        mu * (delta - mu @ delta),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        expected_gradient("va", online, backups).advantage, mu * (v + f - backups), atol=1e-6
    )


# An algorithm may bootstrap from another policy than the greedy one.


class ExpectedQ(QLearning):
    """Expected Sarsa with a softmax policy."""

    def bootstrap_policy(self, online_t: Heads) -> jax.Array:
        return jax.nn.softmax(online_t.advantage)


def test_the_greedy_policy_is_bootstrapped_from_unless_an_algorithm_says_otherwise() -> None:
    heads = random_heads(np.random.default_rng(10))
    greedy = greedy_policy(heads.advantage)
    for loss in ALGORITHMS.values():
        np.testing.assert_array_equal(loss.bootstrap_policy(heads), greedy)
    np.testing.assert_allclose(
        ExpectedQ().bootstrap_policy(heads), jax.nn.softmax(heads.advantage), rtol=1e-6
    )


def test_an_algorithm_without_errors_cannot_be_made() -> None:
    class Unfinished(Loss):
        value_head = behavior_head = False

        def q_values(self, heads: Heads) -> jax.Array:
            return heads.advantage

    with pytest.raises(TypeError, match="errors"):
        Unfinished()  # type: ignore[abstract]
