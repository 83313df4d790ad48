"""Layers with the parameters and the values of the plain ones, quicker on XLA:CPU.

What is slow there: sums that are not vectorized, matrices read against their order, the backward
pass of strided convolutions, and bytes read one by one. Where a layer does not fit what is done
about it (another padding, a dilation, groups), it is the plain one.
"""

import math

import chex
import haiku as hk
import jax
import jax.numpy as jnp
from jax import lax

from learner.networks import Layers, standardize

_WORD = 4  # bytes; also the side of a block of pixels
_BITS = 8
_LARGE_MATRIX = 2**14  # elements; the output layers of heads are smaller


class Conv2D(hk.Conv2D):
    """`hk.Conv2D`, with strides folded into channels and a quick gradient of the bias."""

    def __call__(self, inputs: jax.Array, *, precision: lax.Precision | None = None) -> jax.Array:
        """Convolves [B, H, W, C]."""
        if hk.running_init() or precision is not None or not self._fits(inputs):
            return super().__call__(inputs, precision=precision)
        shape = (*self.kernel_shape, inputs.shape[-1], self.output_channels)
        w = hk.get_parameter("w", shape, inputs.dtype)
        b = hk.get_parameter("b", (self.output_channels,), inputs.dtype)
        return add_bias(strided_convolution(inputs, w, self.stride[0]), b)

    def _fits(self, inputs: jax.Array) -> bool:
        return (
            inputs.ndim == 4
            and self.padding == "VALID"
            and self.stride[0] == self.stride[1]
            and self.kernel_dilation == (1, 1)
            and self.feature_group_count == 1
            and self.channel_index == -1
            and self.mask is None
            and self.with_bias
        )


class Linear(hk.Linear):
    """`hk.Linear`, with a quick gradient of the inputs where the matrix is large."""

    def __call__(self, inputs: jax.Array, *, precision: lax.Precision | None = None) -> jax.Array:
        """Multiplies [B, I]."""
        if hk.running_init() or precision is not None or not self._fits(inputs):
            return super().__call__(inputs, precision=precision)
        w = hk.get_parameter("w", (inputs.shape[-1], self.output_size), inputs.dtype)
        b = hk.get_parameter("b", (self.output_size,), inputs.dtype)
        x = dense(inputs, w)
        return x + jnp.broadcast_to(b, x.shape)

    def _fits(self, inputs: jax.Array) -> bool:
        return (
            inputs.ndim == 2
            and inputs.shape[1] * self.output_size >= _LARGE_MATRIX
            and self.with_bias
        )


def pixels(stack: jax.Array, *, normalize: bool) -> jax.Array:
    """`learner.networks.scaled_pixels` by way of blocks, the form the first convolution takes.

    The convolution's `space_to_depth` undoes the `depth_to_space` of this, and XLA drops both.
    """
    blocks = pixel_blocks(stack) / 255.0
    if normalize:
        images = stack.shape[1]
        blocks = standardize(blocks, every_fourth=lambda x: x[..., :images])
    return depth_to_space(blocks, _WORD)


LAYERS = Layers(Conv2D=Conv2D, Linear=Linear, pixels=pixels)


def pixel_blocks(stack: jax.Array) -> jax.Array:
    """`space_to_depth` of frames, uint8 [B, C, H, W], as float32 [B, H/4, W/4, 16 C] in 0 .. 255.

    A word holds four neighbors of a row, so only words are moved, and a loop that gathers nothing
    then turns them into floats: a third of the time of XLA's own way, byte by byte.
    """
    chex.assert_rank(stack, 4)
    chex.assert_type(stack, jnp.uint8)
    batch, images, height, width = stack.shape
    rows, columns = height // _WORD, width // _WORD
    words = lax.bitcast_convert_type(
        stack.reshape(batch, images, rows, _WORD, columns, _WORD), jnp.uint32
    )
    words = words.transpose(0, 2, 4, 3, 1).reshape(batch, rows, columns, 1, _WORD * images)
    places = (_BITS * jnp.arange(_WORD, dtype=jnp.uint32)).reshape(1, 1, 1, _WORD, 1)
    floats = ((words >> places) & 0xFF).astype(jnp.float32)
    return floats.reshape(batch, rows, columns, _WORD * _WORD * images)


def space_to_depth(x: jax.Array, block: int) -> jax.Array:
    """[B, H, W, C] with each block of pixels as one, its channels by column, row and channel."""
    batch, height, width, channels = x.shape
    rows, columns = height // block, width // block
    x = x.reshape(batch, rows, block, columns, block, channels).transpose(0, 1, 3, 4, 2, 5)
    return x.reshape(batch, rows, columns, block * block * channels)


def depth_to_space(x: jax.Array, block: int) -> jax.Array:
    """Undoes `space_to_depth`."""
    batch, rows, columns, depth = x.shape
    channels = depth // block**2
    x = x.reshape(batch, rows, columns, block, block, channels).transpose(0, 1, 4, 2, 3, 5)
    return x.reshape(batch, rows * block, columns * block, channels)


def strided_convolution(x: jax.Array, w: jax.Array, stride: int) -> jax.Array:
    """Convolves x [B, H, W, C] with w [k, k, C, O] without padding.

    Blocks of pixels that divide image, kernel and stride become pixels with more channels in all
    three: the same sums in another order. XLA's backward pass of strided layers as in the Atari
    torsos takes 0.7 to 0.9 of its time that way.
    """
    chex.assert_rank([x, w], 4)
    block = math.gcd(stride, *x.shape[1:3], *w.shape[:2])
    if block > 1:
        x, w, stride = space_to_depth(x, block), _kernel_to_depth(w, block), stride // block
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), "VALID", dimension_numbers=layout)


def _kernel_to_depth(w: jax.Array, block: int) -> jax.Array:
    # A kernel is an image whose pixels are matrices [C, O].
    height, width, channels, outputs = w.shape
    folded = space_to_depth(w.reshape(1, height, width, channels * outputs), block)
    return folded.reshape(height // block, width // block, block * block * channels, outputs)


@jax.custom_vjp
def add_bias(x: jax.Array, b: jax.Array) -> jax.Array:
    """Adds b [C] to every pixel of x [B, H, W, C]."""
    chex.assert_rank([x, b], [4, 1])
    return x + jnp.broadcast_to(b, x.shape)


def _add_bias_forward(x: jax.Array, b: jax.Array) -> tuple[jax.Array, None]:
    return add_bias(x, b), None


def _add_bias_backward(saved: None, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    # XLA's sum over pixels is not vectorized on CPU; as a product it takes a quarter of the time.
    # The barrier has the gradient computed once, instead of once more inside of each use.
    del saved
    gradient = lax.optimization_barrier(gradient)
    pixels = gradient.reshape(-1, gradient.shape[-1])
    return gradient, jnp.ones(len(pixels), pixels.dtype) @ pixels


add_bias.defvjp(_add_bias_forward, _add_bias_backward)


@jax.custom_vjp
def dense(x: jax.Array, w: jax.Array) -> jax.Array:
    """x [B, I] times w [I, O]."""
    chex.assert_rank([x, w], 2)
    return x @ w


def _dense_forward(x: jax.Array, w: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return dense(x, w), (x, w)


def _dense_backward(
    saved: tuple[jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
    # The textbook's g w^T reads the large matrix against its order, at three times the cost here.
    # The small ones are turned instead; without both barriers XLA would turn them back.
    x, w = saved
    turned = lax.optimization_barrier(gradient.T)
    return lax.optimization_barrier(w @ turned).T, x.T @ gradient


dense.defvjp(_dense_forward, _dense_backward)
