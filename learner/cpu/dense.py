"""The product of a dense layer, with a backward pass that is quick on CPU."""

import chex
import jax
from jax import lax


@jax.custom_vjp
def dense(x: jax.Array, w: jax.Array) -> jax.Array:
    """x [B, I] times w [I, O]."""
    chex.assert_rank([x, w], 2)
    return x @ w


def _forward(x: jax.Array, w: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return dense(x, w), (x, w)


def _backward(
    saved: tuple[jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
    # The textbook's g w^T reads the large matrix against its order, at three times the cost here.
    # The small ones are turned instead; without both barriers XLA would turn them back.
    x, w = saved
    turned = lax.optimization_barrier(gradient.T)
    return lax.optimization_barrier(w @ turned).T, x.T @ gradient


dense.defvjp(_forward, _backward)
