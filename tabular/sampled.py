"""Tabular VA-learning from samples with a decaying rate: the setting of Theorem 2.

Each step draws one transition from every state and applies the updates of the paper's Algorithm 1
to all of them. Tables start at zero.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from learner import losses
from learner.losses import ALGORITHMS, Heads
from tabular import behavior, learning, recursion
from tabular.learning import Tables
from tabular.mdps import Model

_VA = ALGORITHMS["va"]
# alpha_n = (n + 1)^-0.6: its sum diverges and the sum of its squares does not (Theorem 2).
_RATE_POWER = 0.6


class _Sample(NamedTuple):
    x: jax.Array
    a: jax.Array
    y: jax.Array  # the state that follows


def decaying_rate(visits: jax.Array) -> jax.Array:
    """alpha of a state visited `visits` times before."""
    return (visits + 1.0) ** -_RATE_POWER


def sample_errors(
    tables: Tables, sample: _Sample, mdp: Model, mu: jax.Array, policy: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """Steps 2 and 3 of Algorithm 1: the errors of V(x) and A(x, a) against their targets."""
    heads = learning.heads_of(tables, mu)
    here, there = (Heads(*(head[state] for head in heads)) for state in (sample.x, sample.y))
    policy_t = _VA.bootstrap_policy(there) if policy is None else policy[sample.y]
    pair = (sample.x, sample.a)
    backup = losses.backup_target(_VA, there, policy_t, mdp.return_t[pair], mdp.discount_t[pair])
    value_error, advantage_error = _VA.errors(here, sample.a, backup).regressed
    return value_error, advantage_error


def learn_from_samples(
    key: jax.Array, mdp: Model, mu: jax.Array, policy: jax.Array | None, *, num_steps: int
) -> tuple[jax.Array, jax.Array]:
    """The errors of V and of A, in the maximum norm, after each step."""
    action_sums, next_sums = behavior.cumulative(mu), behavior.cumulative(mdp.next_state)
    limit = recursion.fixed_point(mdp, mu, policy)
    states = jnp.arange(mu.shape[0])

    def draw(uniforms: jax.Array, x: jax.Array) -> _Sample:
        a = behavior.draw(action_sums[x], uniforms[0])
        return _Sample(x, a, behavior.draw(next_sums[x, a], uniforms[1]))

    def step(
        tables: Tables, inputs: tuple[jax.Array, jax.Array]
    ) -> tuple[Tables, tuple[jax.Array, jax.Array]]:
        uniforms, rate = inputs
        samples = jax.vmap(draw)(uniforms, states)
        over_states = jax.vmap(sample_errors, (None, 0, None, None, None))
        value_error, advantage_error = over_states(tables, samples, mdp, mu, policy)
        tables = Tables(
            tables.value - rate * value_error,
            tables.advantage.at[states, samples.a].add(-rate * advantage_error),
        )
        return tables, recursion.distances(tables, limit)

    uniforms = jax.random.uniform(key, (num_steps, len(states), 2))
    rates = decaying_rate(jnp.arange(num_steps))
    return jax.lax.scan(step, learning.zero_tables(*mu.shape), (uniforms, rates))[1]
