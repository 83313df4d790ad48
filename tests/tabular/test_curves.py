"""When a run counts as converged, as diverged, or as neither."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.losses import ALGORITHMS
from tabular import behavior, control, curves, mdps, recursion, sampled
from tabular.behavior import Data
from tabular.learning import Problem
from tabular.setting import Setting

FEW = Setting(gradient="per-trajectory", updates=10, max_updates=20_000, gamma=0.5)


def one_problem(*, steps: int = 100) -> tuple[mdps.Model, Problem]:
    """Three states, two actions, data of one trajectory; with leading axes [1, 1]."""
    mdp = mdps.random_mdp(jax.random.key(0), num_states=3, num_actions=2, gamma=0.5)
    mu = jnp.full((3, 2), 0.5)
    counts = behavior.collect(jax.random.key(1), mdp, mu, num_trajectories=1, num_steps=steps)
    problem = control.problem_of(mdp, Data(counts[0], 1), mu, None, FEW)
    return mdp, jax.tree.map(lambda part: part[None, None], problem)


def followed(setting: Setting, name: str = "q") -> curves.Curves:
    _, problem = one_problem()
    measures = {name: lambda tables, problem: {"f": jnp.sum(tables.advantage, axis=(2, 3))}}
    losses = {name: ALGORITHMS[name]}
    return curves.follow(losses, problem, measures, setting, lambda points: None)[name]


def test_points_lie_four_to_a_doubling_and_name_the_budget_and_the_cap():
    setting = Setting(gradient="per-step", updates=500, max_updates=1000)
    found = curves.points(setting)
    assert found[0] == 10
    assert {500, 1000} < set(found)
    assert all(at % 10 == 0 for at in found)
    assert [at for at in found if 160 <= at < 320] == [160, 190, 230, 270]


def test_a_run_that_stands_still_has_converged_to_the_values_of_its_data():
    setting = Setting(gradient="per-trajectory", updates=10, max_updates=20_000, learning_rate=0.01)
    seen = followed(setting)
    _, problem = one_problem()
    assert seen.converged_at[0, 0] == seen.updates[-1] < 20_000
    assert seen.diverged_at[0, 0] == 0
    limit = mdps.optimal_q(jax.tree.map(lambda part: part[0, 0], problem.model))
    np.testing.assert_allclose(seen.measured["f"][-1, 0, 0], jnp.sum(limit), rtol=1e-3)


def test_a_run_that_still_moves_at_the_cap_has_done_neither():
    seen = followed(Setting(gradient="per-step", updates=10, max_updates=100, learning_rate=0.01))
    assert seen.updates[-1] == 100
    assert seen.converged_at[0, 0] == seen.diverged_at[0, 0] == 0


def test_a_run_whose_rate_is_too_large_has_diverged_and_is_held_where_it_last_was():
    seen = followed(Setting(gradient="per-trajectory", updates=10, max_updates=20_000))
    assert seen.diverged_at[0, 0] > 0
    assert seen.converged_at[0, 0] == 0
    assert np.all(np.isfinite(seen.measured["f"]))
    assert seen.measured["f"][-1, 0, 0] == seen.measured["f"][-2, 0, 0]


def test_curves_that_end_early_are_held_up_to_the_longest():
    short = curves.Curves(
        np.array([0, 10]), {"f": np.array([[[1.0]], [[2.0]]])}, np.zeros((1, 1)), np.zeros((1, 1))
    )
    longer = short.extended(np.array([0, 10, 20, 30]))
    np.testing.assert_array_equal(longer.measured["f"][:, 0, 0], [1.0, 2.0, 2.0, 2.0])


@pytest.mark.parametrize("name", ["va", "q"])
def test_algorithm_1_along_a_trajectory_moves_one_pair_a_step_as_printed(name):
    mdp, problem = one_problem()
    mu = problem.mu[0, 0]
    start = sampled.start_walk(3, 2)
    first = sampled.learn_along_trajectory(
        jax.random.key(3), mdp, mu, ALGORITHMS[name], start, num_steps=1
    )
    ((x, a),) = np.argwhere(np.asarray(first.visits))
    reward = mdp.return_t[x, a]  # tables are zero, and the first rate is one
    moved = np.zeros((3, 2))
    moved[x, a] = reward
    np.testing.assert_allclose(first.tables.advantage, moved)
    np.testing.assert_allclose(first.tables.value, (name == "va") * moved.sum(axis=1))
    assert x == 0


def test_algorithm_1_along_a_long_trajectory_comes_near_its_limit():
    mdp, problem = one_problem()
    mu = problem.mu[0, 0]
    walk = sampled.learn_along_trajectory(
        jax.random.key(4), mdp, mu, ALGORITHMS["va"], sampled.start_walk(3, 2), num_steps=30_000
    )
    limit = recursion.fixed_point(mdp, mu, None)
    assert max(float(part) for part in recursion.distances(walk.tables, limit)) < 0.2
