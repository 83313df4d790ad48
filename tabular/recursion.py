"""The exact VA recursion, and the bounds of Theorem 1 at every iteration.

V_{t+1} = mu T(Q_t - mu A_t) and A_{t+1} = T(Q_t - mu A_t) - V_t. The errors VA-learning regresses
are V - y and A - (y - V), so the recursion is a full step on their means: over a ~ mu for V, of
each pair for A. T is T^pi or, for control, T*.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from learner.losses import ALGORITHMS
from tabular import learning, mdps
from tabular.learning import Tables
from tabular.mdps import Model

_VA = ALGORITHMS["va"]


class Convergence(NamedTuple):
    """Errors in the maximum norm and their bounds at t = 0 .. T; `inf` where nothing is claimed."""

    value_error: jax.Array  # [T + 1]: ||V_t - V_mu||
    value_bound: jax.Array  # [T + 1]: gamma^t C
    advantage_error: jax.Array  # [T + 1]: ||A_t - A_mu||
    advantage_bound: jax.Array  # [T + 1]: gamma^{t-1} (1 + gamma) C, from t = 1 on

    def holds(self, *, rounding: float) -> bool:
        """Whether every error is within its bound, up to `rounding`."""
        value = np.all(self.value_error <= self.value_bound + rounding)
        return bool(value and np.all(self.advantage_error <= self.advantage_bound + rounding))


def va_recursion(tables: Tables, mdp: Model, mu: jax.Array, policy: jax.Array | None) -> Tables:
    """One exact iteration; `policy` is the one evaluated, None for control."""
    backups = learning.mean_backups(_VA, tables, mu, policy, mdp)
    value_error, advantage_error = jnp.moveaxis(
        learning.errors_of(_VA, tables, mu, backups).regressed, 2, 0
    )
    return Tables(
        value=tables.value - mdps.mean_under(mu, value_error),
        advantage=tables.advantage - advantage_error,
    )


def fixed_point(mdp: Model, mu: jax.Array, policy: jax.Array | None) -> Tables:
    """V_mu and A_mu of Q^pi, or of Q* for control (paper, Theorem 1)."""
    q = mdps.optimal_q(mdp) if policy is None else mdps.q_of_policy(mdp, policy)
    value = mdps.mean_under(mu, q)
    return Tables(value, q - value[:, None])


def distances(tables: Tables, other: Tables) -> tuple[jax.Array, jax.Array]:
    """Maximum norms of the differences of V and of A."""
    value, advantage = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), tables, other)
    return value, advantage


def run_recursion(
    start: Tables, mdp: Model, mu: jax.Array, policy: jax.Array | None, *, num_iterations: int
) -> Convergence:
    """Iterates from `start`, and lays the errors beside the bounds of Theorem 1."""
    chex.assert_equal_shape([start.advantage, mu])
    limit = fixed_point(mdp, mu, policy)

    def iterate(tables: Tables, _: None) -> tuple[Tables, tuple[jax.Array, jax.Array]]:
        tables = va_recursion(tables, mdp, mu, policy)
        return tables, distances(tables, limit)

    first = distances(start, limit)
    _, later = jax.lax.scan(iterate, start, length=num_iterations)
    value, advantage = (jnp.concatenate([a[None], b]) for a, b in zip(first, later, strict=True))
    gamma, initial = jnp.max(mdp.discount_t), first[0] + first[1]
    powers = gamma ** jnp.arange(num_iterations + 1)
    bound = powers[:-1] * (1.0 + gamma) * initial
    return Convergence(
        value_error=value,
        value_bound=powers * initial,
        advantage_error=advantage,
        advantage_bound=jnp.concatenate([jnp.full((1,), jnp.inf), bound]),
    )
