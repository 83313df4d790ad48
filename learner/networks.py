"""Convolutional torsos with value, advantage and behaviour heads.

A network takes a batch of stacks, uint8 [B, 4, 84, 84], and returns `Heads` with a leading batch
axis. Parameters live under the module names `torso`, `value`, `advantage` and `behaviour`, so the
part that acting needs (torso and advantage) is a plain subset of the dictionary.
"""

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import chex
import haiku as hk
import jax
import jax.numpy as jnp

from learner.cpu.bias import add_bias
from learner.cpu.convolution import strided_convolution
from learner.cpu.dense import dense
from learner.cpu.pixel_blocks import BLOCK, every_fourth_pixel, kernel_to_blocks, to_blocks
from learner.losses import Heads

OBSERVATION_SHAPE = (4, 84, 84)
_MIN_VARIANCE = 1e-4  # of a stack of pixels in [0, 1]: an empty screen stays empty


class Conv(NamedTuple):
    """One convolution: output channels, kernel side, stride."""

    channels: int
    kernel: int
    stride: int


class Architecture(NamedTuple):
    """A torso and the hidden size of the heads on it.

    Kernel and stride of the first convolution are multiples of `pixel_blocks.BLOCK`.
    """

    convs: tuple[Conv, ...]
    hidden: int


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        "nature": Architecture((Conv(32, 8, 4), Conv(64, 4, 2), Conv(64, 3, 1)), 512),
        "nips2013": Architecture((Conv(16, 8, 4), Conv(32, 4, 2)), 256),
        # nips2013 with half the hidden units: half the parameters, and a quicker update.
        "small": Architecture((Conv(16, 8, 4), Conv(32, 4, 2)), 128),
        # Real but quick to compile: for tests and first tries.
        "tiny": Architecture((Conv(4, 8, 8), Conv(8, 4, 2)), 16),
    }
)


class Network(NamedTuple):
    """Pure functions of one architecture."""

    init: Callable[[jax.Array], hk.MutableParams]
    apply: Callable[[hk.Params, jax.Array], Heads]
    advantage: Callable[[hk.Params, jax.Array], jax.Array]  # needs the acting subset only


def make_network(
    architecture: Architecture,
    num_actions: int,
    *,
    value_head: bool,
    behavior_head: bool,
    normalize: bool = False,
) -> Network:
    """Builds a network with just the heads an algorithm needs.

    `normalize` standardizes every stack of frames, puts a layer normalization before the
    non-linearity of every head, and starts the heads' outputs at zero.
    """
    torso = functools.partial(_torso, architecture, normalize=normalize)
    head = functools.partial(_head, hidden=architecture.hidden, normalize=normalize)

    def heads(stack: jax.Array) -> Heads:
        embedding = torso(stack)
        advantage = head("advantage", embedding, outputs=num_actions)
        value = jnp.zeros(advantage.shape[0])
        if value_head:
            value = head("value", embedding, outputs=1)[:, 0]
        logits = jnp.zeros_like(advantage)
        if behavior_head:
            # The likelihood of the behaviour must never shape the torso.
            embedding = jax.lax.stop_gradient(embedding)
            logits = head("behaviour", embedding, outputs=num_actions)
        return Heads(value=value, advantage=advantage, logits=logits)

    def advantage(stack: jax.Array) -> jax.Array:
        embedding = torso(stack)
        return head("advantage", embedding, outputs=num_actions)

    heads_fn: hk.Transformed = hk.without_apply_rng(hk.transform(heads))
    advantage_fn: hk.Transformed = hk.without_apply_rng(hk.transform(advantage))

    def init(key: jax.Array) -> hk.MutableParams:
        return heads_fn.init(key, jnp.zeros((1, *OBSERVATION_SHAPE), jnp.uint8))

    return Network(init=init, apply=heads_fn.apply, advantage=advantage_fn.apply)


def _torso(architecture: Architecture, stack: jax.Array, *, normalize: bool) -> jax.Array:
    chex.assert_shape(stack, (None, *OBSERVATION_SHAPE))
    x = to_blocks(stack) / 255.0
    if normalize:
        x = _standardize(x)
    with hk.name_scope("torso"):
        for i, conv in enumerate(architecture.convs):
            with hk.name_scope(f"conv_{i}"):
                x = _conv(x, conv) if i else _first_conv(x, conv)
    return x.reshape(x.shape[0], -1)


def _standardize(x: jax.Array) -> jax.Array:
    """Zero mean and unit variance for every stack, given in blocks.

    On a plain background of grey, a filter of the first layer is either always on or always off:
    what moves is too small to turn it. Half of them start dead, and more die while learning.
    """
    # Every fourth pixel tells the background as well as all of them, at a sixteenth of the cost.
    x = x - jnp.mean(every_fourth_pixel(x), axis=(1, 2, 3), keepdims=True)
    variance = jnp.mean(jnp.square(every_fourth_pixel(x)), axis=(1, 2, 3), keepdims=True)
    return x * jax.lax.rsqrt(variance + _MIN_VARIANCE)


def _first_conv(x: jax.Array, conv: Conv) -> jax.Array:
    """On frames in blocks; its parameters are those of the frames as they are."""
    w, b = _conv_parameters(conv, OBSERVATION_SHAPE[0])
    x = strided_convolution(x, kernel_to_blocks(w), conv.stride // BLOCK)
    return jax.nn.relu(add_bias(x, b))


def _conv(x: jax.Array, conv: Conv) -> jax.Array:
    w, b = _conv_parameters(conv, x.shape[-1])
    return jax.nn.relu(add_bias(strided_convolution(x, w, conv.stride), b))


def _conv_parameters(conv: Conv, inputs: int) -> tuple[jax.Array, jax.Array]:
    shape = (conv.kernel, conv.kernel, inputs, conv.channels)
    w = hk.get_parameter("w", shape, init=_fan_in_init(shape))
    return w, hk.get_parameter("b", (conv.channels,), init=jnp.zeros)


def _linear(x: jax.Array, *, outputs: int) -> jax.Array:
    shape = (x.shape[-1], outputs)
    w = hk.get_parameter("w", shape, init=_fan_in_init(shape))
    b = hk.get_parameter("b", (outputs,), init=jnp.zeros)
    x = dense(x, w)
    return x + jnp.broadcast_to(b, x.shape)


def _fan_in_init(shape: tuple[int, ...]) -> hk.initializers.Initializer:
    """Haiku's own default for convolutions and linear layers."""
    return hk.initializers.TruncatedNormal(1.0 / math.sqrt(math.prod(shape[:-1])))


def _head(
    name: str, embedding: jax.Array, *, hidden: int, outputs: int, normalize: bool
) -> jax.Array:
    with hk.name_scope(name):
        with hk.name_scope("hidden"):
            x = _linear(embedding, outputs=hidden)
        out_init = None
        if normalize:
            x = hk.LayerNorm(-1, create_scale=True, create_offset=True, name="norm")(x)
            # Hidden units of unit scale would make random outputs far larger than any true
            # advantage, and acting greedily on them would be all there is to unlearn at first.
            out_init = hk.initializers.Constant(0.0)
        return hk.Linear(outputs, w_init=out_init, name="out")(jax.nn.relu(x))
