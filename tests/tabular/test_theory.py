"""Theorem 1 at every iteration, Theorem 2 in the limit, and the example of Section 3."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.losses import ALGORITHMS, Dueling
from tabular import behavior, learning, mdps, recursion, sampled
from tabular.learning import Problem, Tables

CASES = pytest.mark.parametrize("case", ["evaluation", "control"])


def make_case(
    seed: int, case: str, *, gamma: float, num_states: int = 20
) -> tuple[mdps.Model, jax.Array, jax.Array | None]:
    keys = jax.random.split(jax.random.key(seed), 3)
    mdp = mdps.random_mdp(keys[0], num_states=num_states, gamma=gamma)
    deterministic = behavior.random_deterministic(keys[1], num_states, 5)
    mu = behavior.mixed_with_uniform(deterministic, jnp.asarray(0.5))
    policy = jax.random.dirichlet(keys[2], jnp.ones(5), (num_states,))
    return mdp, mu, policy if case == "evaluation" else None


def random_tables(seed: int, scale: float) -> Tables:
    keys = jax.random.split(jax.random.key(seed))
    return Tables(
        scale * jax.random.normal(keys[0], (20,)), scale * jax.random.normal(keys[1], (20, 5))
    )


@CASES
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_bounds_of_theorem_1_hold_at_every_iteration(case, scale, seed):
    mdp, mu, policy = make_case(seed, case, gamma=0.99)
    run = jax.jit(functools.partial(recursion.run_recursion, num_iterations=2500))
    seen = run(random_tables(seed + 7, scale), mdp, mu, policy)
    assert seen.value_error.shape == (2501,)
    assert np.all(seen.value_error <= seen.value_bound + 1e-9)
    assert np.all(seen.advantage_error[1:] <= seen.advantage_bound[1:] + 1e-9)
    assert seen.holds(rounding=1e-9)
    np.testing.assert_allclose(seen.value_bound[-1] / seen.value_bound[0], 0.99**2500)
    # And it does converge: the bound itself is small by now.
    assert seen.value_error[-1] < 1e-7


def test_an_error_beyond_its_bound_is_noticed():
    fine, bound = np.array([1.0, 0.5]), np.array([1.0, 0.6])
    assert recursion.Convergence(fine, bound, fine, bound).holds(rounding=0.0)
    for field in ("value_error", "advantage_error"):
        seen = recursion.Convergence(fine, bound, fine, bound)._replace(**{field: fine + 0.2})
        assert not seen.holds(rounding=1e-9)


@CASES
def test_one_iteration_is_the_recursion_as_printed(case):
    mdp, mu, policy = make_case(2, case, gamma=0.9)
    tables = random_tables(3, 5.0)
    v, a, mu_ = (np.asarray(part) for part in (*tables, mu))
    q = v[:, None] + a - (mu_ * a).sum(axis=1)[:, None]  # Q_t - mu A_t
    onward = q.max(axis=1) if policy is None else (np.asarray(policy) * q).sum(axis=1)
    backup = np.asarray(mdp.return_t) + 0.9 * np.asarray(mdp.next_state) @ onward
    after = recursion.va_recursion(tables, mdp, mu, policy)
    np.testing.assert_allclose(after.value, (mu_ * backup).sum(axis=1))
    np.testing.assert_allclose(after.advantage, backup - v[:, None])


@CASES
def test_samples_and_a_decaying_rate_lead_to_the_limit_of_theorem_2(case):
    num_steps = 30_000
    mdp, mu, policy = make_case(4, case, gamma=0.8, num_states=6)
    learn = functools.partial(sampled.learn_from_samples, num_steps=num_steps)
    run = jax.vmap(learn, (0, None, None, None))
    keys = jax.random.split(jax.random.key(5), 16)
    # It computes for long, unlike other tests: here optimizing pays.
    run = jax.jit(run, compiler_options={"xla_backend_optimization_level": 3})
    for error in run(keys, mdp, mu, policy):
        # Noise is of the order of the square root of the rate: half of it for ten times the steps.
        ends = [num_steps // 100, num_steps // 10, num_steps]
        means = [np.mean(error[:, end // 2 : end]) for end in ends]
        assert means[1] < 0.7 * means[0]
        assert means[2] < 0.7 * means[1]
        assert means[2] < 0.15


def test_the_rate_satisfies_the_conditions_of_theorem_2():
    # alpha_n = n^-p: the sum diverges for p <= 1, the sum of squares converges for p > 1/2.
    rates = np.asarray(sampled.decaying_rate(jnp.arange(3)))
    powers = -np.log(rates[1:]) / np.log([2.0, 3.0])
    assert rates[0] == 1.0
    assert np.all((powers > 0.5) & (powers <= 1.0))


class _Uniform(Dueling):
    def bootstrap_policy(self, online_t):
        return jnp.full_like(online_t.advantage, 1.0 / len(online_t.advantage))


def test_control_backs_up_what_the_algorithm_says():
    mdp, mu, _ = make_case(6, "control", gamma=0.9)
    tables, uniform = random_tables(8, 1.0), jnp.full_like(mu, 0.2)
    own = learning.mean_backups(_Uniform(), tables, mu, None, mdp)
    evaluated = learning.mean_backups(Dueling(), tables, mu, uniform, mdp)
    np.testing.assert_allclose(own, evaluated)
    greedy = learning.mean_backups(Dueling(), tables, mu, None, mdp)
    assert np.abs(own - greedy).max() > 0.1


def two_states() -> Problem:
    """Section 3.2: x leads to y. In y only action a was ever tried, and it is worth 1."""
    x, y = 0, 1
    next_state = jnp.zeros((2, 2, 2)).at[x, :, y].set(1.0).at[y, :, y].set(1.0)
    model = mdps.make_model(jnp.array([[0.0, 0.0], [1.0, 1.0]]), next_state, gamma=0.9)
    model = model._replace(discount_t=model.discount_t.at[y].set(0.0))
    weights = jnp.zeros((2, 2)).at[y, 0].set(1.0)
    takes_b = jnp.array([[0.0, 1.0], [0.0, 1.0]])
    return Problem(model, weights, jnp.full((2, 2), 0.5), takes_b)


@pytest.mark.parametrize(("name", "informed"), [("va", True), ("q", False)])
def test_what_a_teaches_about_y_reaches_x_through_v_alone(name, informed):
    problem, loss = two_states(), ALGORITHMS[name]
    learn = functools.partial(learning.learn, loss, target_period_updates=1, target_copies=1)
    tables = learn(learning.zero_tables(2, 2), problem, learning_rate=0.1)
    assert tables.advantage[1, 0] > 0.0  # a was learned by both
    assert tables.advantage[1, 1] == 0.0  # b was never tried
    q = tables.value[:, None] + tables.advantage
    assert (q[1, 1] > 0.0) == informed
    backups = learning.mean_backups(loss, tables, problem.mu, problem.policy, problem.model)
    assert (backups[0, 0] > 0.0) == informed
