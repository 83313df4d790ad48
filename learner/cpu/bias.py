"""The bias of a convolution, with a backward pass that is quick on CPU."""

import chex
import jax
import jax.numpy as jnp
from jax import lax


@jax.custom_vjp
def add_bias(x: jax.Array, b: jax.Array) -> jax.Array:
    """Adds b [C] to every pixel of x [B, H, W, C]."""
    chex.assert_rank([x, b], [4, 1])
    return x + jnp.broadcast_to(b, x.shape)


def _forward(x: jax.Array, b: jax.Array) -> tuple[jax.Array, None]:
    return add_bias(x, b), None


def _backward(saved: None, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    # XLA's sum over pixels is not vectorized on CPU; as a product it takes a quarter of the time.
    # The barrier has the gradient computed once, instead of once more inside of each use.
    del saved
    gradient = lax.optimization_barrier(gradient)
    pixels = gradient.reshape(-1, gradient.shape[-1])
    return gradient, jnp.ones(len(pixels), pixels.dtype) @ pixels


add_bias.defvjp(_forward, _backward)
