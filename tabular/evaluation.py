"""Policy evaluation: how far VA-learning and TD are from A^pi and Q^pi, for several data budgets.

Data come from the uniform policy. A budget of N trajectories is the first N of the largest one, so
budgets differ in how much is seen, not in luck.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from learner.losses import ALGORITHMS
from tabular import behavior, mdps
from tabular.behavior import Data
from tabular.control import Advance, Instance, make_step, problem_of, start_tables
from tabular.learning import Problem, Tables
from tabular.setting import RECORD_PERIOD_UPDATES, Setting

# Data keys of control are folded with the index of an epsilon; this one is apart from all of them.
_DATA_STREAM = 1_000_000
_LEARNERS = {"va": ALGORITHMS["va"], "td": ALGORITHMS["q"]}


class Estimates(NamedTuple):
    """||A_hat - A^pi||_2 and ||Q_hat - Q^pi||_2."""

    advantage: jax.Array
    q: jax.Array


class EvaluationResult(NamedTuple):
    """Curves over updates. B budgets, S seeds, P points; the first point is before any update."""

    budgets: np.ndarray  # [B]
    updates: np.ndarray  # [P]
    advantage_error: dict[str, np.ndarray]  # [P, B, S] of `va`, `td` and `va_centered`
    q_error: dict[str, np.ndarray]  # [P, B, S] of `va` and `td`
    advantage_floor: np.ndarray  # [S]: ||A_mu^pi - A^pi||_2, what `va` tends to with all data


def run_evaluation(setting: Setting, instances: Instance, advance: Advance) -> EvaluationResult:
    """Runs both learners on every MDP and budget; `advance` is called at each point."""
    collect = jax.vmap(functools.partial(_make_problems, setting=setting), out_axes=1)
    problems = jax.jit(collect)(instances)  # [B, S]
    truth = jax.jit(jax.vmap(functools.partial(_truth, setting=setting)))(instances)  # [S]
    step = make_step(_LEARNERS, setting)
    tables = start_tables(_LEARNERS, problems)
    points = [_measure_all(tables, problems, truth)]
    for _ in range(setting.updates // RECORD_PERIOD_UPDATES):
        tables = step(tables, problems)
        points.append(_measure_all(tables, problems, truth))
        jax.block_until_ready(points[-1])
        advance("policy evaluation", 1)
    curves = jax.tree.map(lambda *values: np.stack(values), *points)
    return EvaluationResult(
        budgets=np.asarray(setting.budgets),
        updates=RECORD_PERIOD_UPDATES * np.arange(len(points)),
        advantage_error={name: errors.advantage for name, errors in curves.items()},
        q_error={name: curves[name].q for name in _LEARNERS},
        advantage_floor=np.asarray(_floor(truth, problems)),
    )


def _target_policy(instance: Instance, setting: Setting) -> jax.Array:
    share = jnp.asarray(setting.target_epsilon, instance.deterministic.dtype)
    return behavior.mixed_with_uniform(instance.deterministic, share)


def _truth(instance: Instance, setting: Setting) -> jax.Array:
    return mdps.q_of_policy(instance.mdp, _target_policy(instance, setting))


def _make_problems(instance: Instance, setting: Setting) -> Problem:
    """One problem per budget, with a leading axis [B]."""
    uniform = jnp.full_like(instance.deterministic, 1.0 / instance.deterministic.shape[1])
    counts = behavior.collect(
        jax.random.fold_in(instance.data_key, _DATA_STREAM),
        instance.mdp,
        uniform,
        num_trajectories=max(setting.budgets),
        num_steps=setting.trajectory_steps,
    )
    policy = _target_policy(instance, setting)
    problems = [
        problem_of(instance.mdp, Data(jnp.sum(counts[:budget], axis=0)), uniform, policy, setting)
        for budget in setting.budgets
    ]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *problems)


@jax.jit
def _measure_all(
    tables: dict[str, Tables], problems: Problem, truth: jax.Array
) -> dict[str, Estimates]:
    measures = {
        "va": (_va_errors, "va"),
        "td": (_td_errors, "td"),
        "va_centered": (_va_centered_errors, "va"),
    }
    return {
        name: jax.vmap(jax.vmap(measure), (0, 0, None))(tables[learner], problems, truth)
        for name, (measure, learner) in measures.items()
    }


def _va_errors(tables: Tables, problem: Problem, q: jax.Array) -> Estimates:
    """A_hat = A and Q_hat = V + A, both raw (paper, Appendix C.1)."""
    return _errors(tables.advantage, tables.value[:, None] + tables.advantage, problem, q)


def _td_errors(tables: Tables, problem: Problem, q: jax.Array) -> Estimates:
    """A_hat = Q - pi Q and Q_hat = Q; the table of algorithm `q` is Q itself."""
    estimate = tables.advantage
    return _errors(_centered_by_pi(estimate, problem), estimate, problem, q)


def _va_centered_errors(tables: Tables, problem: Problem, q: jax.Array) -> Estimates:
    """VA-learning's A centered by pi, as TD's is: what both estimate is then A^pi."""
    implied = tables.value[:, None] + tables.advantage
    return _errors(_centered_by_pi(tables.advantage, problem), implied, problem, q)


def _errors(
    advantage_hat: jax.Array, q_hat: jax.Array, problem: Problem, q: jax.Array
) -> Estimates:
    advantage = _centered_by_pi(q, problem)
    return Estimates(jnp.linalg.norm(advantage_hat - advantage), jnp.linalg.norm(q_hat - q))


def _centered_by_pi(table: jax.Array, problem: Problem) -> jax.Array:
    assert problem.policy is not None
    return table - mdps.mean_under(problem.policy, table)[:, None]


def _floor(truth: jax.Array, problems: Problem) -> jax.Array:
    """||A_mu^pi - A^pi||_2 per seed: V_mu^pi - V^pi, once for every action."""

    def floor(q: jax.Array, problem: Problem) -> jax.Array:
        assert problem.policy is not None
        uniform = jnp.mean(q, axis=1)
        gap = uniform - mdps.mean_under(problem.policy, q)
        return jnp.linalg.norm(jnp.broadcast_to(gap[:, None], q.shape))

    return jax.vmap(floor)(truth, jax.tree.map(lambda part: part[0], problems))
