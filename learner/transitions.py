"""What the learner is fed: an n-step transition, and the sums it stands for.

Suffixes: `_tm1` is the source step, `_t` the step the bootstrap starts from (n steps later).
Columns are raw; the n-step sums are formed here and nowhere else.
"""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

# NumPy on the host, JAX on the device.
Column = Any


class Transition(NamedTuple):
    """One replay item (or a batch of them, with a leading axis)."""

    o_tm1: Column  # uint8 [4, 84, 84]: the stack the action was chosen on
    o_t: Column  # uint8 [4, 84, 84]: the stack to bootstrap from
    a_tm1: Column  # int32 []
    r_t: Column  # float32 [n]: clipped rewards, step by step
    discount_t: Column  # float32 [n]: gamma, or 0 where the life or the game ended
    epsilon: Column  # float32 []: exploration rate of the actor when it chose `a_tm1`
    greedy_tm1: Column  # int32 []: the action the actor's network preferred


def n_step_return(r_t: jax.Array, discount_t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns R = sum_k (prod_{j<k} d_j) r_k and D = prod_j d_j for one window."""
    chex.assert_rank([r_t, discount_t], 1)
    chex.assert_equal_shape([r_t, discount_t])
    carried = jnp.cumprod(discount_t)
    before = jnp.concatenate([jnp.ones_like(carried[:1]), carried[:-1]])
    return jnp.sum(before * r_t), carried[-1]
