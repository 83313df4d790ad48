"""Control: how good the greedy policy gets, for each share of uniform actions in the data.

Runs every algorithm on every MDP and every epsilon at once, until all of them have settled.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from learner.losses import ALGORITHMS
from tabular import behavior, curves, mdps
from tabular.behavior import Data
from tabular.curves import Advance, Curves, Measured
from tabular.learning import Problem, Tables
from tabular.mdps import Model
from tabular.setting import Setting


class Instance(NamedTuple):
    """One MDP with what depends on its seed alone."""

    mdp: Model
    deterministic: jax.Array  # [X, A]: the policy that mu mixes with the uniform one
    optimal: jax.Array  # []: performance of the optimal policy
    data_key: jax.Array


class ControlResult(NamedTuple):
    """Curves of every algorithm: `performance`, and squared norms of the advantage."""

    epsilons: np.ndarray  # [E]
    optimal: np.ndarray  # [S]
    curves: dict[str, Curves]  # conditions G are the epsilons


# Lines of the figure of norms -> algorithm, and which of its measures.
NORMS = {
    "dueling_uniform": ("dueling", "norm_uniform"),
    "dueling_mu": ("dueling", "norm_mu"),
    "behavior_dueling_mu": ("behavior_dueling", "norm_mu"),
}


def make_instance(key: jax.Array, *, gamma: float) -> Instance:
    """A random MDP, its deterministic policy, and the key its data are drawn with."""
    mdp_key, policy_key, data_key = jax.random.split(key, 3)
    mdp = mdps.random_mdp(mdp_key, gamma=gamma)
    deterministic = behavior.random_deterministic(policy_key, *mdp.return_t.shape)
    optimal = jnp.mean(jnp.max(mdps.optimal_q(mdp), axis=1))
    return Instance(mdp, deterministic, optimal, data_key)


def make_instances(setting: Setting) -> Instance:
    """The MDPs of a study, with a leading axis [S]."""
    keys = jax.random.split(jax.random.key(setting.seed), setting.seeds)
    return jax.jit(jax.vmap(functools.partial(make_instance, gamma=setting.gamma)))(keys)


def make_problem(
    instance: Instance, epsilon: jax.Array, index: jax.Array, setting: Setting
) -> Problem:
    """Collects data under epsilon u + (1 - epsilon) pi_det and hands it to the learners."""
    mu = behavior.mixed_with_uniform(instance.deterministic, epsilon)
    counts = behavior.collect(
        jax.random.fold_in(instance.data_key, index),
        instance.mdp,
        mu,
        num_trajectories=setting.trajectories,
        num_steps=setting.trajectory_steps,
    )
    data = Data(jnp.sum(counts, axis=0), setting.trajectories)
    return problem_of(instance.mdp, data, mu, None, setting)


def problem_of(
    mdp: Model, data: Data, mu: jax.Array, policy: jax.Array | None, setting: Setting
) -> Problem:
    """The data as a learner sees them, with mu itself or its estimate from the data."""
    if setting.behavior == "estimated":
        mu = behavior.estimated_policy(data)
    assert setting.gradient != "both"
    weights = data.weights(setting.gradient)
    return Problem(behavior.empirical_model(mdp, data), weights, mu, policy)


def squared_norm(f: jax.Array, weights: jax.Array, nu: jax.Array) -> jax.Array:
    """(f(x, a) - f(x, nu))^2 averaged over the samples (paper, Appendix D)."""
    center = mdps.mean_under(nu, f)
    return jnp.sum(weights * (f - center[:, None]) ** 2) / jnp.sum(weights)


def run_control(setting: Setting, instances: Instance, advance: Advance) -> ControlResult:
    """Runs every algorithm on every MDP and epsilon; `advance` is called at each point."""
    epsilons = jnp.asarray(setting.control_epsilons)
    over_seeds = jax.vmap(functools.partial(make_problem, setting=setting), (0, None, None))
    over_epsilons = jax.jit(jax.vmap(over_seeds, (None, 0, 0)))
    problems = over_epsilons(instances, epsilons, jnp.arange(len(epsilons)))
    measure = functools.partial(_measure_all, mdp=instances.mdp)
    return ControlResult(
        epsilons=np.asarray(epsilons),
        optimal=np.asarray(instances.optimal),
        curves=curves.follow(
            ALGORITHMS,
            problems,
            dict.fromkeys(ALGORITHMS, measure),
            setting,
            functools.partial(advance, f"control, {setting.gradient}"),
        ),
    )


@jax.jit
def _measure_all(tables: Tables, problems: Problem, mdp: Model) -> Measured:
    def measure(mdp: Model, tables: Tables, problem: Problem) -> Measured:
        f, uniform = tables.advantage, jnp.full_like(problem.mu, 1.0 / problem.mu.shape[1])
        return {
            "performance": mdps.performance(mdp, mdps.greedy(f)),
            "norm_uniform": squared_norm(f, problem.weights, uniform),
            "norm_mu": squared_norm(f, problem.weights, problem.mu),
        }

    return jax.vmap(jax.vmap(measure), (None, 0, 0))(mdp, tables, problems)
