"""The paper's two theorems, tried on the study's own MDPs."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tabular import behavior, recursion, sampled
from tabular.control import Instance
from tabular.curves import Advance
from tabular.learning import Tables
from tabular.recursion import Convergence
from tabular.setting import Setting

NUM_ITERATIONS = 2000
NUM_SAMPLED_STEPS = 20_000
# At 0.99 the same accuracy takes a hundred times the samples.
SAMPLED_GAMMA = 0.9
# Theorem 2 asks that mu gives every action a chance, whatever the study's epsilon.
EPSILON = 0.5
ROUNDING = 1e-9
_KEY_STREAM = 2_000_000


class TheoremResult(NamedTuple):
    """What was measured for each case (`evaluation`, `control`); arrays have a leading axis [S]."""

    recursion: dict[str, Convergence]
    sampled: dict[str, tuple[np.ndarray, np.ndarray]]  # errors of V and of A [S, T]


def run_theorems(setting: Setting, instances: Instance, advance: Advance) -> TheoremResult:
    """Both theorems for policy evaluation and for control, on every MDP."""
    result = TheoremResult({}, {})
    for case in ("evaluation", "control"):
        exact = jax.vmap(functools.partial(_recursion, case=case))
        result.recursion[case] = jax.tree.map(np.asarray, jax.jit(exact)(instances))
        advance("Theorem 1", 1)
        drawn = jax.vmap(functools.partial(_sampled, case=case))
        value, advantage = jax.jit(drawn)(instances)
        result.sampled[case] = np.asarray(value), np.asarray(advantage)
        advance("Theorem 2", 1)
    return result


def _recursion(instance: Instance, case: str) -> Convergence:
    key = jax.random.fold_in(instance.data_key, _KEY_STREAM)
    mu = behavior.mixed_with_uniform(instance.deterministic, jnp.asarray(EPSILON))
    value_key, advantage_key = jax.random.split(key)
    # Far from zero and from each other: the bounds hold from any start.
    start = Tables(
        10.0 * jax.random.normal(value_key, mu.shape[:1]),
        10.0 * jax.random.normal(advantage_key, mu.shape),
    )
    policy = _policy(instance, case)
    return recursion.run_recursion(start, instance.mdp, mu, policy, num_iterations=NUM_ITERATIONS)


def _sampled(instance: Instance, case: str) -> tuple[jax.Array, jax.Array]:
    key = jax.random.fold_in(instance.data_key, _KEY_STREAM + 1)
    mu = behavior.mixed_with_uniform(instance.deterministic, jnp.asarray(EPSILON))
    mdp = instance.mdp._replace(discount_t=jnp.full_like(instance.mdp.discount_t, SAMPLED_GAMMA))
    policy = _policy(instance, case)
    return sampled.learn_from_samples(key, mdp, mu, policy, num_steps=NUM_SAMPLED_STEPS)


def _policy(instance: Instance, case: str) -> jax.Array | None:
    return instance.deterministic if case == "evaluation" else None


def summarize(result: TheoremResult) -> dict[str, Any]:
    """What the page and `summary.json` say of the theorems."""
    summary: dict[str, Any] = {"theorem_1": {}, "theorem_2": {}}
    for case, seen in result.recursion.items():
        summary["theorem_1"][case] = {
            "iterations": NUM_ITERATIONS,
            "holds_at_every_iteration": seen.holds(rounding=ROUNDING),
            "largest_share_of_bound": {
                "V": float(np.max(seen.value_error / seen.value_bound)),
                "A": float(np.max(seen.advantage_error / seen.advantage_bound)),
            },
        }
    steps = [10**power for power in range(1, 9) if 10**power < NUM_SAMPLED_STEPS]
    steps.append(NUM_SAMPLED_STEPS)
    for case, (value, advantage) in result.sampled.items():
        summary["theorem_2"][case] = {
            "steps": steps,
            "gamma": SAMPLED_GAMMA,
            "mean_error": {
                "V": [float(np.mean(value[:, step - 1])) for step in steps],
                "A": [float(np.mean(advantage[:, step - 1])) for step in steps],
            },
        }
    return summary
