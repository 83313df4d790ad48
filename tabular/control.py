"""Control: how good the greedy policy gets, for each share of uniform actions in the data.

Runs every algorithm on every MDP and every epsilon at once. One call of the compiled step brings
all of them to the next point of their curves.
"""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from learner.losses import ALGORITHMS, Loss
from tabular import behavior, learning, mdps
from tabular.behavior import Data
from tabular.learning import Problem, Tables
from tabular.mdps import Model
from tabular.setting import RECORD_PERIOD_UPDATES, Setting

Advance = Callable[[str, int], None]  # what is running, and how many more points are done


class Instance(NamedTuple):
    """One MDP with what depends on its seed alone."""

    mdp: Model
    deterministic: jax.Array  # [X, A]: the policy that mu mixes with the uniform one
    optimal: jax.Array  # []: performance of the optimal policy
    data_key: jax.Array


class ControlResult(NamedTuple):
    """Curves over updates. E epsilons, S seeds, P points; the first point is before any update."""

    epsilons: np.ndarray  # [E]
    updates: np.ndarray  # [P]
    performance: dict[str, np.ndarray]  # algorithm -> [P, E, S]
    optimal: np.ndarray  # [S]
    norms: dict[str, np.ndarray]  # which of NORMS -> [P, E, S]


NORMS = {
    "dueling_uniform": ("dueling", "uniform"),
    "dueling_mu": ("dueling", "mu"),
    "behavior_dueling_mu": ("behavior_dueling", "mu"),
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
    return problem_of(instance.mdp, Data(jnp.sum(counts, axis=0)), mu, None, setting)


def problem_of(
    mdp: Model, data: Data, mu: jax.Array, policy: jax.Array | None, setting: Setting
) -> Problem:
    """The data as a learner sees them, with mu itself or its estimate from the data."""
    if setting.behavior == "estimated":
        mu = behavior.estimated_policy(data)
    return Problem(behavior.empirical_model(mdp, data), data.weights, mu, policy)


def squared_norm(tables: Tables, problem: Problem, centered_by: str) -> jax.Array:
    """(f(x, a) - f(x, nu))^2 averaged over the samples (paper, Appendix D)."""
    f = tables.advantage
    nu = problem.mu if centered_by == "mu" else jnp.full_like(f, 1.0 / f.shape[1])
    center = mdps.mean_under(nu, f)
    return jnp.sum(problem.weights * (f - center[:, None]) ** 2)


def make_step(
    algorithms: Mapping[str, Loss], setting: Setting
) -> Callable[[dict[str, Tables], Problem], dict[str, Tables]]:
    """All algorithms on a grid of problems [., S], from one point of their curves to the next."""
    learn = functools.partial(
        learning.learn,
        learning_rate=setting.learning_rate,
        target_period_updates=setting.target_period_updates,
        target_copies=RECORD_PERIOD_UPDATES // setting.target_period_updates,
    )

    def step(tables: dict[str, Tables], problems: Problem) -> dict[str, Tables]:
        return {
            name: jax.vmap(jax.vmap(functools.partial(learn, loss)))(tables[name], problems)
            for name, loss in algorithms.items()
        }

    return jax.jit(step)


def start_tables(algorithms: Mapping[str, Loss], problems: Problem) -> dict[str, Tables]:
    """Zeros for every algorithm on a grid of problems."""
    zeros = Tables(jnp.zeros(problems.mu.shape[:-1]), jnp.zeros(problems.mu.shape))
    return dict.fromkeys(algorithms, zeros)


def run_control(setting: Setting, instances: Instance, advance: Advance) -> ControlResult:
    """Runs every algorithm on every MDP and epsilon; `advance` is called at each point."""
    epsilons = jnp.asarray(setting.control_epsilons)
    over_seeds = jax.vmap(functools.partial(make_problem, setting=setting), (0, None, None))
    over_epsilons = jax.jit(jax.vmap(over_seeds, (None, 0, 0)))
    problems = over_epsilons(instances, epsilons, jnp.arange(len(epsilons)))
    step = make_step(ALGORITHMS, setting)
    tables = start_tables(ALGORITHMS, problems)
    points = [_measure_all(tables, problems, instances.mdp)]
    for _ in range(setting.updates // RECORD_PERIOD_UPDATES):
        tables = step(tables, problems)
        points.append(_measure_all(tables, problems, instances.mdp))
        jax.block_until_ready(points[-1])
        advance("control", 1)
    curves = jax.tree.map(lambda *values: np.stack(values), *points)
    # By name: JAX sorts the keys of dictionaries, readers want the paper's order.
    return ControlResult(
        epsilons=np.asarray(epsilons),
        updates=RECORD_PERIOD_UPDATES * np.arange(len(points)),
        performance={name: curves["performance"][name] for name in ALGORITHMS},
        optimal=np.asarray(instances.optimal),
        norms={name: curves["norms"][name] for name in NORMS},
    )


@jax.jit
def _measure_all(
    tables: dict[str, Tables], problems: Problem, mdp: Model
) -> dict[str, dict[str, jax.Array]]:
    def scored(mdp: Model, tables: Tables) -> jax.Array:
        return mdps.performance(mdp, mdps.greedy(tables.advantage))

    over_epsilons = jax.vmap(jax.vmap(scored), (None, 0))
    norms = {}
    for name, (algorithm, centered_by) in NORMS.items():
        norm = jax.vmap(jax.vmap(functools.partial(squared_norm, centered_by=centered_by)))
        norms[name] = norm(tables[algorithm], problems)
    performance = {name: over_epsilons(mdp, tables[name]) for name in tables}
    return {"performance": performance, "norms": norms}
