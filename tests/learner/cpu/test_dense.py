"""The dense product and its own backward pass."""

import jax
import jax.numpy as jnp
import numpy as np

from learner.cpu.dense import dense


def test_values_and_gradients_are_those_of_a_matrix_product() -> None:
    rng = np.random.default_rng(0)
    x, w, g = (
        jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((3, 7), (7, 5), (3, 5))
    )
    expected, expected_vjp = jax.vjp(jnp.matmul, x, w)
    found, found_vjp = jax.vjp(dense, x, w)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for gradient, reference in zip(found_vjp(g), expected_vjp(g), strict=True):
        np.testing.assert_allclose(gradient, reference, rtol=1e-5, atol=1e-6)
