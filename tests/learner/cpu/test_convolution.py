"""The folded convolution is the plain one, forwards and backwards."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from learner.cpu.convolution import strided_convolution


def plain(x: jax.Array, w: jax.Array, stride: int) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), "VALID", dimension_numbers=layout)


@pytest.mark.parametrize(
    ("side", "kernel", "stride", "folds"),
    [(24, 8, 4, True), (12, 4, 2, True), (9, 3, 1, False), (9, 4, 2, False), (12, 3, 2, False)],
)
def test_values_and_gradients_are_those_of_the_plain_convolution(
    side: int, kernel: int, stride: int, folds: bool
) -> None:
    rng = np.random.default_rng(side)
    x = jnp.asarray(rng.normal(size=(3, side, side, 2)), jnp.float32)
    w = jnp.asarray(rng.normal(size=(kernel, kernel, 2, 5)), jnp.float32)
    text = jax.jit(lambda x, w: strided_convolution(x, w, stride)).lower(x, w).as_text()
    assert ("transpose" in text) == folds

    expected, expected_vjp = jax.vjp(lambda x, w: plain(x, w, stride), x, w)
    found, found_vjp = jax.vjp(lambda x, w: strided_convolution(x, w, stride), x, w)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    cotangent = jnp.asarray(rng.normal(size=expected.shape), jnp.float32)
    for gradient, reference in zip(found_vjp(cotangent), expected_vjp(cotangent), strict=True):
        np.testing.assert_allclose(gradient, reference, atol=1e-3)
