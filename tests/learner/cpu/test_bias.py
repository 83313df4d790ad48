"""The bias of a convolution and its own backward pass."""

import jax
import jax.numpy as jnp
import numpy as np

from learner.cpu.bias import add_bias


def test_bias_and_gradients_equal_the_plain_ones():
    rng = np.random.default_rng(1)
    x, cotangent = rng.normal(size=(2, 3, 5, 6, 4)).astype(np.float32)
    b = rng.normal(size=4).astype(np.float32)
    found, found_vjp = jax.vjp(add_bias, x, b)
    plain, plain_vjp = jax.vjp(lambda x, b: x + jnp.broadcast_to(b, x.shape), x, b)
    np.testing.assert_array_equal(found, plain)
    jax.tree.map(
        lambda ours, theirs: np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5),
        found_vjp(jnp.asarray(cotangent)),
        plain_vjp(jnp.asarray(cotangent)),
    )
