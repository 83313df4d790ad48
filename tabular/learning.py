"""Gradient descent on tables, with the losses of the deep learner.

The network is a table: V [X], and f (raw A, or Q for algorithm `q`) [X, A]; mu is given. The loss
is squared, the gradient is averaged over the data (`Data.weights` has both readings of it), the
rate is constant and the target tables are copied every few updates (paper, Appendix C.1).

The errors of `learner.losses` are linear in the back-up y, and y is a constant to the gradient. So
the mean gradient over the samples of a pair (x, a) is the gradient at their mean back-up, and a sum
over pairs, weighted by how often they occur, is the sum over samples, exactly.
"""

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from learner import losses
from learner.losses import Heads
from tabular.mdps import Model


class Tables(NamedTuple):
    """The parameters of a tabular learner."""

    value: jax.Array  # [X]
    advantage: jax.Array  # [X, A]


class Problem(NamedTuple):
    """What a learner is given: the data, mu, and the policy to evaluate."""

    model: Model  # as estimated from the data
    weights: jax.Array  # [X, A]: of each pair in the gradient, in proportion to the samples
    mu: jax.Array  # [X, A]: the behavior policy, known or estimated
    policy: jax.Array | None  # [X, A]: to evaluate; None: control


def zero_tables(num_states: int, num_actions: int) -> Tables:
    """Where every run of the study starts."""
    return Tables(jnp.zeros(num_states), jnp.zeros((num_states, num_actions)))


def heads_of(tables: Tables, mu: jax.Array) -> Heads:
    """The heads of all states, with a leading axis [X]. Logits of mu may be -inf: it may be 0."""
    chex.assert_equal_shape([tables.advantage, mu])
    return Heads(value=tables.value, advantage=tables.advantage, logits=jnp.log(mu))


def q_values(loss: losses.Loss, tables: Tables, mu: jax.Array) -> jax.Array:
    """The Q [X, A] an algorithm acts and bootstraps with."""
    return jax.vmap(loss.q_values)(heads_of(tables, mu))


def mean_backups(
    loss: losses.Loss, target: Tables, mu: jax.Array, policy: jax.Array | None, model: Model
) -> jax.Array:
    """E[y | x, a] for all pairs, x' as in the model; without a policy, the algorithm's own."""
    heads = heads_of(target, mu)
    policy_t = jax.vmap(loss.bootstrap_policy)(heads) if policy is None else policy
    backup = functools.partial(losses.backup_target, loss)
    over_next = jax.vmap(backup, in_axes=(0, 0, None, None))
    over_pairs = jax.vmap(jax.vmap(over_next, in_axes=(None, None, 0, 0)), (None, None, 0, 0))
    backups = over_pairs(heads, policy_t, model.return_t, model.discount_t)
    return jnp.sum(model.next_state * backups, axis=2)


def errors_of(
    loss: losses.Loss, tables: Tables, mu: jax.Array, backups: jax.Array
) -> losses.Errors:
    """The errors of all pairs: regressed [X, A, k], td [X, A]."""
    over_actions = jax.vmap(loss.errors, in_axes=(None, 0, 0))
    actions = jnp.arange(backups.shape[1])
    return jax.vmap(over_actions, in_axes=(0, None, 0))(heads_of(tables, mu), actions, backups)


def mean_loss(tables: Tables, loss: losses.Loss, problem: Problem, backups: jax.Array) -> jax.Array:
    """L_VA (paper, Eqn 6) or L_QL (Eqn 9): half the squared errors, averaged over the data."""
    errors = errors_of(loss, tables, problem.mu, backups)
    return 0.5 * jnp.sum(problem.weights * jnp.sum(errors.regressed**2, axis=2))


def learn(
    loss: losses.Loss,
    tables: Tables,
    problem: Problem,
    *,
    learning_rate: float,
    target_period_updates: int,
    target_copies: int | jax.Array,
) -> Tables:
    """Runs `target_copies` periods; each ends with a copy of the online tables to the target."""

    def update(tables: Tables, backups: jax.Array) -> Tables:
        gradient = jax.grad(mean_loss)(tables, loss, problem, backups)
        return jax.tree.map(lambda table, slope: table - learning_rate * slope, tables, gradient)

    def period(_: int, tables: Tables) -> Tables:
        # The target tables are those of the period's start, so its back-ups are computed once.
        backups = mean_backups(loss, tables, problem.mu, problem.policy, problem.model)
        return jax.lax.fori_loop(
            0, target_period_updates, lambda _, now: update(now, backups), tables
        )

    return jax.lax.fori_loop(0, target_copies, period, tables)
