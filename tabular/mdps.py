"""Random finite MDPs, and their exact solutions: Q of a policy, and the optimal Q.

Unbatched: states x in [X], actions a in [A]; `vmap` over MDPs. Nothing terminates, so the discount
is the same everywhere.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from learner.losses import greedy_policy
from learner.transitions import n_step_return

# Policy iteration on 20 states settles in less than ten rounds.
_POLICY_ITERATIONS = 50


class Model(NamedTuple):
    """What follows a pair (x, a), in truth or as estimated from data."""

    return_t: jax.Array  # [X, A]: R, here of one step
    discount_t: jax.Array  # [X, A]: D
    next_state: jax.Array  # [X, A, X]: weights of x'; all zero for a pair never seen


def make_model(reward: jax.Array, next_state: jax.Array, *, gamma: float) -> Model:
    """A model of one-step windows, summed by the deep learner's own n-step rule."""
    chex.assert_rank([reward, next_state], [2, 3])
    windows = jax.vmap(jax.vmap(n_step_return))
    return_t, discount_t = windows(reward[..., None], jnp.full_like(reward, gamma)[..., None])
    return Model(return_t, discount_t, next_state)


def random_mdp(
    key: jax.Array,
    *,
    num_states: int = 20,
    num_actions: int = 5,
    concentration: float = 0.5,
    gamma: float = 0.99,
) -> Model:
    """Dirichlet transitions (paper, Appendix C.1) and rewards r(x, a) ~ N(0, 1), deterministic."""
    next_key, reward_key = jax.random.split(key)
    alpha = jnp.full(num_states, concentration)
    next_state = jax.random.dirichlet(next_key, alpha, (num_states, num_actions))
    reward = jax.random.normal(reward_key, (num_states, num_actions))
    return make_model(reward, next_state, gamma=gamma)


def q_of_policy(mdp: Model, policy: jax.Array) -> jax.Array:
    """Q^pi [X, A], from the linear equations of V^pi."""
    chex.assert_equal_shape([policy, mdp.return_t])
    num_states = policy.shape[0]
    onward = mdp.discount_t[..., None] * mdp.next_state
    transition = jnp.einsum("xa,xay->xy", policy, onward)
    reward = jnp.sum(policy * mdp.return_t, axis=1)
    value = jnp.linalg.solve(jnp.eye(num_states) - transition, reward[:, None])[:, 0]
    return mdp.return_t + onward @ value


def optimal_q(mdp: Model) -> jax.Array:
    """Q* [X, A], by policy iteration."""

    def improve(_: int, q: jax.Array) -> jax.Array:
        return q_of_policy(mdp, greedy(q))

    return jax.lax.fori_loop(0, _POLICY_ITERATIONS, improve, mdp.return_t)


def greedy(q: jax.Array) -> jax.Array:
    """The greedy policy [X, A] as distributions."""
    return jax.vmap(greedy_policy)(q)


def mean_under(policy: jax.Array, table: jax.Array) -> jax.Array:
    """The paper's `pi Q`: sum_a pi(a|x) Q(x, a), for all x."""
    return jnp.sum(policy * table, axis=1)


def performance(mdp: Model, policy: jax.Array) -> jax.Array:
    """V^pi averaged uniformly over states (paper, Appendix C.1: the mean value of Q^pi)."""
    return jnp.mean(mean_under(policy, q_of_policy(mdp, policy)))
