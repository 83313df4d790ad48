"""Tabular VA-learning from samples: Algorithm 1 of the paper, with a decaying rate.

`learn_along` follows one trajectory, as Algorithm 1 is written. `learn_everywhere` samples one
transition from every state at each step: the setting of Theorem 2. Both do the same update; the
rate falls with the visits of a state, which in the second setting is the number of steps. Tables
start at zero.
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
    """Steps 2 and 3 of Algorithm 1: what V(x) and A(x, a) are off their back-up targets."""
    heads = learning.heads_of(tables, mu)
    here, there = (Heads(*(head[state] for head in heads)) for state in (sample.x, sample.y))
    policy_t = _VA.bootstrap_policy(there) if policy is None else policy[sample.y]
    pair = (sample.x, sample.a)
    backup = losses.backup_target(_VA, there, policy_t, mdp.return_t[pair], mdp.discount_t[pair])
    value_error, advantage_error = _VA.errors(here, sample.a, backup).regressed
    return value_error, advantage_error


def learn_along(
    key: jax.Array, mdp: Model, mu: jax.Array, policy: jax.Array | None, *, num_steps: int
) -> tuple[jax.Array, jax.Array]:
    """Algorithm 1 along one trajectory from state 0; the errors of V and of A after each step."""
    sums, limit = _sums(mdp, mu), recursion.fixed_point(mdp, mu, policy)

    def step(
        carry: tuple[Tables, jax.Array, jax.Array], uniforms: jax.Array
    ) -> tuple[tuple[Tables, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
        tables, visits, x = carry
        sample = _draw(uniforms, x, sums)
        value_error, advantage_error = sample_errors(tables, sample, mdp, mu, policy)
        rate = decaying_rate(visits[x])
        tables = Tables(
            tables.value.at[x].add(-rate * value_error),
            tables.advantage.at[x, sample.a].add(-rate * advantage_error),
        )
        return (tables, visits.at[x].add(1.0), sample.y), recursion.distances(tables, limit)

    tables = learning.zero_tables(*mu.shape)
    start = (tables, jnp.zeros_like(tables.value), jnp.asarray(0))
    return jax.lax.scan(step, start, jax.random.uniform(key, (num_steps, 2)))[1]


def learn_everywhere(
    key: jax.Array, mdp: Model, mu: jax.Array, policy: jax.Array | None, *, num_steps: int
) -> tuple[jax.Array, jax.Array]:
    """One sample from every state at each step; the errors of V and of A after each step."""
    sums, limit = _sums(mdp, mu), recursion.fixed_point(mdp, mu, policy)
    states = jnp.arange(mu.shape[0])

    def step(
        tables: Tables, inputs: tuple[jax.Array, jax.Array]
    ) -> tuple[Tables, tuple[jax.Array, jax.Array]]:
        uniforms, rate = inputs
        samples = jax.vmap(_draw, (0, 0, None))(uniforms, states, sums)
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


def _sums(mdp: Model, mu: jax.Array) -> tuple[jax.Array, jax.Array]:
    return behavior.cumulative(mu), behavior.cumulative(mdp.next_state)


def _draw(uniforms: jax.Array, x: jax.Array, sums: tuple[jax.Array, jax.Array]) -> _Sample:
    action_sums, next_sums = sums
    a = behavior.draw(action_sums[x], uniforms[0])
    return _Sample(x, a, behavior.draw(next_sums[x, a], uniforms[1]))
