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
from tabular import behavior, curves, mdps
from tabular.behavior import Data
from tabular.control import Instance, problem_of
from tabular.curves import Advance, Curves, Measured
from tabular.learning import Problem, Tables
from tabular.setting import Setting

# Data keys of control are folded with the index of an epsilon; this one is apart from all of them.
_DATA_STREAM = 1_000_000
LEARNERS = {"va": ALGORITHMS["va"], "td": ALGORITHMS["q"]}


class EvaluationResult(NamedTuple):
    """Curves of `va` and `td`; the measures are distances in the Euclidean norm.

    Of both: `advantage` (A_hat from A^pi) and `q` (Q_hat from Q^pi). Of `va` also `centered`
    (A - pi A from A^pi) and `own_limit` (A from A_mu^pi, which Theorem 1 says it tends to).
    """

    budgets: np.ndarray  # [B]
    curves: dict[str, Curves]  # conditions G are the budgets
    floor: np.ndarray  # [S]: ||A_mu^pi - A^pi||_2, what `advantage` of `va` tends to


def run_evaluation(setting: Setting, instances: Instance, advance: Advance) -> EvaluationResult:
    """Runs both learners on every MDP and budget; `advance` is called at each point."""
    collect = jax.vmap(functools.partial(_make_problems, setting=setting), out_axes=1)
    problems = jax.jit(collect)(instances)  # [B, S]
    truth = jax.jit(jax.vmap(functools.partial(_truth, setting=setting)))(instances)  # [S]
    measures = {
        "va": functools.partial(_measure_va, truth=truth),
        "td": functools.partial(_measure_td, truth=truth),
    }
    report = functools.partial(advance, f"evaluation, {setting.gradient}")
    return EvaluationResult(
        budgets=np.asarray(setting.budgets),
        curves=curves.follow(LEARNERS, problems, measures, setting, report),
        floor=np.asarray(_floor(truth, problems)),
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
        problem_of(
            instance.mdp, Data(jnp.sum(counts[:budget], axis=0), budget), uniform, policy, setting
        )
        for budget in setting.budgets
    ]
    return jax.tree.map(lambda *parts: jnp.stack(parts), *problems)


@jax.jit
def _measure_va(tables: Tables, problems: Problem, truth: jax.Array) -> Measured:
    def measure(tables: Tables, problem: Problem, q: jax.Array) -> Measured:
        """A_hat = A and Q_hat = V + A, both raw (paper, Appendix C.1)."""
        a, advantage = tables.advantage, _centered_by_pi(q, problem)
        return {
            "advantage": jnp.linalg.norm(a - advantage),
            "centered": jnp.linalg.norm(_centered_by_pi(a, problem) - advantage),
            # Data of evaluation come from the uniform policy: the mean over actions is mu Q^pi.
            "own_limit": jnp.linalg.norm(a - (q - jnp.mean(q, axis=1, keepdims=True))),
            "q": jnp.linalg.norm(tables.value[:, None] + a - q),
        }

    return jax.vmap(jax.vmap(measure), (0, 0, None))(tables, problems, truth)


@jax.jit
def _measure_td(tables: Tables, problems: Problem, truth: jax.Array) -> Measured:
    def measure(tables: Tables, problem: Problem, q: jax.Array) -> Measured:
        """A_hat = Q - pi Q and Q_hat = Q; the table of algorithm `q` is Q itself."""
        estimate, advantage = tables.advantage, _centered_by_pi(q, problem)
        return {
            "advantage": jnp.linalg.norm(_centered_by_pi(estimate, problem) - advantage),
            "q": jnp.linalg.norm(estimate - q),
        }

    return jax.vmap(jax.vmap(measure), (0, 0, None))(tables, problems, truth)


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
