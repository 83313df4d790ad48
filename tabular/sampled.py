"""Learning from single samples with a decaying rate: Theorem 2, and Algorithm 1 as printed.

For Theorem 2 each step draws one transition from every state and updates all of them. Along a
trajectory each step is one transition, from where the last one ended. Tables start at zero.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from learner import losses
from learner.losses import ALGORITHMS, Heads
from tabular import behavior, learning, mdps, recursion
from tabular.control import Instance
from tabular.curves import Advance
from tabular.learning import Tables
from tabular.mdps import Model
from tabular.setting import Setting
from tabular.summary import gap, spread

_VA = ALGORITHMS["va"]
_ON_PATHS = ("va", "q")
NUM_PATH_STEPS = 100_000
_PATH_POINTS = 50
_KEY_STREAM = 3_000_000
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
    value_error, advantage_error = _regressed(tables, _VA, sample, mdp, mu, policy)
    return value_error, advantage_error


def _regressed(
    tables: Tables,
    loss: losses.Loss,
    sample: _Sample,
    mdp: Model,
    mu: jax.Array,
    policy: jax.Array | None,
) -> jax.Array:
    heads = learning.heads_of(tables, mu)
    here, there = (Heads(*(head[state] for head in heads)) for state in (sample.x, sample.y))
    policy_t = loss.bootstrap_policy(there) if policy is None else policy[sample.y]
    pair = (sample.x, sample.a)
    backup = losses.backup_target(loss, there, policy_t, mdp.return_t[pair], mdp.discount_t[pair])
    return loss.errors(here, sample.a, backup).regressed


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


class _Walk(NamedTuple):
    """Where a trajectory is, what was learned on it, and how often each pair was visited."""

    x: jax.Array
    tables: Tables
    visits: jax.Array  # [X, A]


def learn_along_trajectory(
    key: jax.Array, mdp: Model, mu: jax.Array, loss: losses.Loss, walk: _Walk, *, num_steps: int
) -> _Walk:
    """Algorithm 1 (or another algorithm, the same way) for some more steps of a trajectory."""
    action_sums, next_sums = behavior.cumulative(mu), behavior.cumulative(mdp.next_state)

    def squares(tables: Tables, sample: _Sample) -> jax.Array:
        return 0.5 * jnp.sum(_regressed(tables, loss, sample, mdp, mu, None) ** 2)

    def step(walk: _Walk, uniforms: jax.Array) -> tuple[_Walk, None]:
        a = behavior.draw(action_sums[walk.x], uniforms[0])
        sample = _Sample(walk.x, a, behavior.draw(next_sums[walk.x, a], uniforms[1]))
        # A gradient step on one sample is what Algorithm 1 prints: V(x) and A(x, a) move.
        slope = jax.grad(squares)(walk.tables, sample)
        rates = Tables(decaying_rate(jnp.sum(walk.visits, axis=1)), decaying_rate(walk.visits))
        tables = jax.tree.map(lambda t, r, g: t - r * g, walk.tables, rates, slope)
        return _Walk(sample.y, tables, walk.visits.at[walk.x, a].add(1.0)), None

    return jax.lax.scan(step, walk, jax.random.uniform(key, (num_steps, 2)))[0]


def start_walk(num_states: int, num_actions: int) -> _Walk:
    """State 0, tables of zeros, nothing visited."""
    tables = learning.zero_tables(num_states, num_actions)
    return _Walk(jnp.asarray(0), tables, jnp.zeros((num_states, num_actions)))


def run_paths(setting: Setting, instances: Instance, advance: Advance) -> dict[str, Any]:
    """VA-learning and Q-learning for control, each along the same trajectory of every MDP."""
    shares = {}
    for name in _ON_PATHS:
        one = functools.partial(_performance_along, name=name, epsilon=setting.epsilon)
        steps, seen = jax.jit(jax.vmap(one, out_axes=(None, 1)))(instances)
        shares[name] = np.asarray(seen) / np.asarray(instances.optimal)
    advance("Algorithm 1", 1)
    return {
        "epsilon": setting.epsilon,
        "steps": np.asarray(steps).tolist(),
        "share_of_optimal": {name: spread(values) for name, values in shares.items()},
        "gap": gap(shares["va"] - shares["q"]),
    }


def _performance_along(
    instance: Instance, name: str, epsilon: float
) -> tuple[jax.Array, jax.Array]:
    """The performance of the greedy policy at points of one trajectory."""
    mu = behavior.mixed_with_uniform(instance.deterministic, jnp.asarray(epsilon))
    keys = jax.random.split(jax.random.fold_in(instance.data_key, _KEY_STREAM), _PATH_POINTS)
    each = NUM_PATH_STEPS // _PATH_POINTS

    def part(walk: _Walk, key: jax.Array) -> tuple[_Walk, jax.Array]:
        walk = learn_along_trajectory(key, instance.mdp, mu, ALGORITHMS[name], walk, num_steps=each)
        return walk, mdps.performance(instance.mdp, mdps.greedy(walk.tables.advantage))

    steps = each * jnp.arange(1, _PATH_POINTS + 1)
    return steps, jax.lax.scan(part, start_walk(*mu.shape), keys)[1]
