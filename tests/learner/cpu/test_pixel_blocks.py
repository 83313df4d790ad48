"""Frames in blocks: pixels are where they belong, and convolutions are the plain ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from learner.cpu.convolution import strided_convolution
from learner.cpu.pixel_blocks import BLOCK, every_fourth_pixel, kernel_to_blocks, to_blocks


def random_stack(side: int) -> np.ndarray:
    return np.random.default_rng(side).integers(0, 256, (2, 3, side, side), np.uint8)


def test_blocks_hold_their_pixels_by_column_then_image_then_row() -> None:
    stack = random_stack(12)
    blocks = np.asarray(jax.jit(to_blocks)(stack))
    assert blocks.shape == (2, 3, 3, 48)
    assert blocks.dtype == np.float32
    for b, i, j in np.ndindex(2, 3, 3):
        expected = [
            stack[b, image, BLOCK * i + row, BLOCK * j + column]
            for column in range(BLOCK)
            for image in range(3)
            for row in range(BLOCK)
        ]
        assert blocks[b, i, j].tolist() == expected


def test_every_shade_of_grey_is_kept() -> None:
    shades = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    assert sorted(np.asarray(to_blocks(shades)).ravel().tolist()) == list(range(256))


def test_every_fourth_pixel_is_that_of_the_frames() -> None:
    stack = random_stack(20)
    expected = np.moveaxis(stack[:, :, ::BLOCK, ::BLOCK], 1, -1)
    np.testing.assert_array_equal(every_fourth_pixel(to_blocks(jnp.asarray(stack))), expected)


# The last is as the `tiny` network has it: strides that leave a rest of the frame.
@pytest.mark.parametrize(("side", "kernel", "stride"), [(24, 8, 4), (12, 4, 4), (20, 8, 8)])
def test_values_and_gradients_are_those_of_the_plain_convolution(
    side: int, kernel: int, stride: int
) -> None:
    rng = np.random.default_rng(side)
    stack = jnp.asarray(random_stack(side))
    w = jnp.asarray(rng.normal(size=(kernel, kernel, 3, 5)), jnp.float32)

    def plain(w: jax.Array) -> jax.Array:
        x = jnp.moveaxis(stack, 1, -1).astype(jnp.float32)
        layout = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (stride, stride), "VALID", dimension_numbers=layout)

    def in_blocks(w: jax.Array) -> jax.Array:
        return strided_convolution(to_blocks(stack), kernel_to_blocks(w), stride // BLOCK)

    expected, expected_vjp = jax.vjp(plain, w)
    found, found_vjp = jax.vjp(in_blocks, w)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=0.05)
    cotangent = jnp.asarray(rng.normal(size=expected.shape), jnp.float32)
    np.testing.assert_allclose(
        found_vjp(cotangent)[0], expected_vjp(cotangent)[0], rtol=1e-4, atol=0.05
    )


def test_only_bytes_are_taken() -> None:
    with pytest.raises(AssertionError, match="uint8"):
        to_blocks(jnp.zeros((1, 4, 8, 8)))
