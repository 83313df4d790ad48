"""Behavior policies, and the data collected with them.

A data set is kept as counts: how often each pair (x, a) occurs, and which state followed. Rewards
are deterministic, so the losses need no more (see `tabular.learning`).
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from tabular.mdps import Model
from tabular.setting import Gradient


class Data(NamedTuple):
    """Trajectories, counted."""

    counts: jax.Array  # [X, A, X]: how often (x, a, x') occurs
    num_trajectories: int

    def weights(self, gradient: Gradient) -> jax.Array:
        """[X, A]: how much each pair counts in a gradient "averaged across all trajectories".

        Per step it is the share of the pair among all samples. Per trajectory the gradient is
        summed over the steps of each trajectory, and the sums are averaged.
        """
        pairs = jnp.sum(self.counts, axis=2)
        return pairs / (jnp.sum(pairs) if gradient == "per-step" else self.num_trajectories)


def random_deterministic(key: jax.Array, num_states: int, num_actions: int) -> jax.Array:
    """A deterministic policy [X, A], each action equally likely."""
    actions = jax.random.randint(key, (num_states,), 0, num_actions)
    return jax.nn.one_hot(actions, num_actions)


def mixed_with_uniform(policy: jax.Array, epsilon: jax.Array) -> jax.Array:
    """epsilon u + (1 - epsilon) pi (paper, Section 6.1)."""
    chex.assert_rank([policy, epsilon], [2, 0])
    return epsilon / policy.shape[1] + (1.0 - epsilon) * policy


def cumulative(probabilities: jax.Array) -> jax.Array:
    """Running sums over the last axis that end in exactly 1, for `draw`."""
    sums = jnp.cumsum(probabilities, axis=-1)
    return sums / sums[..., -1:]


def draw(sums: jax.Array, uniform: jax.Array) -> jax.Array:
    """The index that a number in [0, 1) falls on; what has no probability is never drawn."""
    chex.assert_rank([sums, uniform], [1, 0])
    return jnp.sum(sums <= uniform)


def collect(
    key: jax.Array, mdp: Model, mu: jax.Array, *, num_trajectories: int, num_steps: int
) -> jax.Array:
    """Counts [N, X, A, X] of N trajectories under mu, all from state 0."""
    action_sums, next_sums = cumulative(mu), cumulative(mdp.next_state)

    def step(x: jax.Array, uniforms: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        a = draw(action_sums[x], uniforms[0])
        y = draw(next_sums[x, a], uniforms[1])
        return y, (x, a, y)

    def trajectory(uniforms: jax.Array) -> jax.Array:
        _, visited = jax.lax.scan(step, jnp.asarray(0), uniforms)
        return jnp.zeros_like(mdp.next_state).at[visited].add(1.0)

    return jax.vmap(trajectory)(jax.random.uniform(key, (num_trajectories, num_steps, 2)))


def estimated_policy(data: Data) -> jax.Array:
    """The maximum-likelihood policy, n(x, a) / n(x); uniform in states never visited."""
    pairs = jnp.sum(data.counts, axis=2)
    visits = jnp.sum(pairs, axis=1, keepdims=True)
    uniform = jnp.full_like(pairs, 1.0 / pairs.shape[1])
    return jnp.where(visits > 0, pairs / jnp.maximum(visits, 1.0), uniform)


def empirical_model(mdp: Model, data: Data) -> Model:
    """The model that the data imply: the mean next state of each pair, and the true rewards."""
    pairs = jnp.sum(data.counts, axis=2, keepdims=True)
    return mdp._replace(next_state=data.counts / jnp.maximum(pairs, 1.0))
