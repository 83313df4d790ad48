"""Random MDPs, exact solutions, and counted trajectories."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tabular import behavior, mdps
from tabular.behavior import Data
from tabular.control import squared_norm


@pytest.fixture
def mdp() -> mdps.Model:
    return mdps.random_mdp(jax.random.key(0))


def test_a_random_mdp_has_the_papers_shape(mdp):
    assert mdp.next_state.shape == (20, 5, 20)
    np.testing.assert_allclose(mdp.next_state.sum(axis=2), 1.0)
    np.testing.assert_allclose(mdp.discount_t, 0.99)
    assert 0.8 < float(jnp.std(mdp.return_t)) < 1.2


def test_q_of_a_policy_satisfies_its_bellman_equation(mdp):
    policy = jax.random.dirichlet(jax.random.key(1), jnp.ones(5), (20,))
    q = mdps.q_of_policy(mdp, policy)
    onward = mdp.next_state @ (policy * q).sum(axis=1)
    np.testing.assert_allclose(q, mdp.return_t + 0.99 * onward, atol=1e-9)


def test_the_optimal_q_satisfies_the_optimality_equation(mdp):
    q = mdps.optimal_q(mdp)
    np.testing.assert_allclose(q, mdp.return_t + 0.99 * mdp.next_state @ q.max(axis=1), atol=1e-9)
    np.testing.assert_allclose(mdps.performance(mdp, mdps.greedy(q)), q.max(axis=1).mean())


def test_trajectories_are_chains_from_state_zero(mdp):
    mu = jnp.full((20, 5), 0.2)
    counts = behavior.collect(jax.random.key(2), mdp, mu, num_trajectories=6, num_steps=50)
    assert counts.shape == (6, 20, 5, 20)
    np.testing.assert_array_equal(counts.sum(axis=(1, 2, 3)), 50)
    # Every state is left as often as it is entered, but for the first and the last.
    balance = np.asarray(counts.sum(axis=(2, 3)) - counts.sum(axis=(1, 2)))
    for one in balance:
        assert np.abs(one).sum() in (0, 2)
        assert one[0] == 1 or not one.any()


def test_data_follow_mu_and_the_transitions(mdp):
    deterministic = behavior.random_deterministic(jax.random.key(3), 20, 5)
    mu = behavior.mixed_with_uniform(deterministic, jnp.asarray(0.5))
    counts = behavior.collect(jax.random.key(4), mdp, mu, num_trajectories=500, num_steps=200)
    data = Data(counts.sum(axis=0), 500)
    np.testing.assert_allclose(behavior.estimated_policy(data), mu, atol=0.05)
    seen = behavior.empirical_model(mdp, data).next_state
    np.testing.assert_allclose(seen, mdp.next_state, atol=0.15)
    np.testing.assert_allclose(data.weights("per-step").sum(), 1.0)


def test_a_gradient_per_trajectory_is_the_mean_of_sums_over_steps(mdp):
    mu = jnp.full((20, 5), 0.2)
    counts = behavior.collect(jax.random.key(2), mdp, mu, num_trajectories=6, num_steps=50)
    pairs = np.asarray(counts.sum(axis=3))  # of each trajectory
    data = Data(counts.sum(axis=0), 6)
    np.testing.assert_allclose(data.weights("per-trajectory"), pairs.mean(axis=0))
    np.testing.assert_allclose(data.weights("per-step"), pairs.sum(axis=0) / 300)


def test_an_estimated_policy_is_uniform_where_nothing_was_seen():
    counts = jnp.zeros((2, 2, 2)).at[0, 1, 0].set(3.0)
    policy = behavior.estimated_policy(Data(counts, 1))
    np.testing.assert_allclose(policy, [[0.0, 1.0], [0.5, 0.5]])


@pytest.mark.parametrize(("uniform", "index"), [(0.0, 1), (0.49, 1), (0.5, 3), (1.0 - 1e-16, 3)])
def test_what_has_no_probability_is_never_drawn(uniform, index):
    sums = behavior.cumulative(jnp.array([0.0, 0.5, 0.0, 0.5, 0.0]))
    assert behavior.draw(sums, jnp.asarray(uniform)) == index


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_a_mixture_is_a_distribution_with_its_share_of_the_uniform_policy(epsilon):
    mu = behavior.mixed_with_uniform(jnp.eye(3)[:2], jnp.asarray(epsilon))
    np.testing.assert_allclose(mu.sum(axis=1), 1.0)
    np.testing.assert_allclose(mu[0, 1], epsilon / 3)


def norm(f: np.ndarray, mu: np.ndarray, nu: np.ndarray) -> float:
    """The squared norm of Appendix D in one state."""
    return float(squared_norm(*(jnp.asarray(row)[None] for row in (f, mu, nu))))


def test_the_squared_norm_under_mu_is_the_variance():
    mu, f = np.random.default_rng(5).dirichlet(np.ones(5)), np.arange(5.0) ** 2
    variance = np.average((f - np.average(f, weights=mu)) ** 2, weights=mu)
    np.testing.assert_allclose(norm(f, mu, mu), variance)


def test_lemma_2_mu_is_the_minimizer_for_every_f_and_nothing_else_is():
    rng = np.random.default_rng(6)
    for _ in range(20):
        mu, nu = rng.dirichlet(np.ones(5), 2)
        for f in rng.normal(size=(10, 5)):
            assert norm(f, mu, mu) <= norm(f, mu, nu) + 1e-12
        # Unique: the f that tells nu from mu is worse under nu, by exactly |nu - mu|^4.
        apart = nu - mu
        excess = norm(apart, mu, nu) - norm(apart, mu, mu)
        np.testing.assert_allclose(excess, (apart @ apart) ** 2, rtol=1e-6, atol=1e-15)


def test_lemma_2_descent_on_the_worst_of_many_f_finds_mu():
    # The worst case is taken relative to the best any nu can do with the same f.
    mu = jnp.asarray([0.5, 0.2, 0.15, 0.1, 0.05])
    directions = jnp.eye(5)

    def worst_excess(logits: jax.Array) -> jax.Array:
        nu = jax.nn.softmax(logits)
        over = jax.vmap(lambda f: squared_norm(f[None], mu[None], nu[None]))(directions)
        best = jax.vmap(lambda f: squared_norm(f[None], mu[None], mu[None]))(directions)
        return jnp.max(over - best)

    def descend(i: int, logits: jax.Array) -> jax.Array:
        step = jax.grad(worst_excess)(logits)
        return logits - step / (1e-9 + jnp.linalg.norm(step)) / (1.0 + i) ** 0.7

    found = jax.lax.fori_loop(0, 20_000, descend, jnp.zeros(5))
    np.testing.assert_allclose(jax.nn.softmax(found), mu, atol=0.01)
