"""Torsos with value, advantage and behavior heads, in Haiku.

A network takes a batch of stacks, uint8 [B, 4, 84, 84], and returns `Heads` with a leading batch
axis. Parameters live under the module names `torso`, `value`, `advantage` and `behaviour`, so the
part that acting needs (torso and advantage) is a plain subset of the dictionary.

Another network is one `Architecture` and one line in `NETWORKS`.
"""

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import chex
import haiku as hk
import jax
import jax.numpy as jnp

from learner.losses import Heads

# That of `actors.observation`, which the learner does not import; tests/launch/test_build.py holds
# the two equal.
OBSERVATION_SHAPE = (4, 84, 84)
_MIN_VARIANCE = 1e-4  # of a stack of pixels in [0, 1]: an empty screen stays empty


class Network(NamedTuple):
    """Pure functions of one network."""

    init: Callable[[jax.Array], hk.MutableParams]
    apply: Callable[[hk.Params, jax.Array], Heads]
    advantage: Callable[[hk.Params, jax.Array], jax.Array]  # needs the acting subset only


class Layers(NamedTuple):
    """The layers a network is built of.

    A backend may have quicker ones, with the parameters and the values of the plain ones.
    """

    Conv2D: Callable[..., Any]
    Linear: Callable[..., Any]
    pixels: Callable[..., jax.Array]  # of a stack, `normalize` by keyword


class Architecture(Protocol):
    """A torso, and the hidden size of the heads on it."""

    @property
    @abc.abstractmethod
    def hidden(self) -> int:
        """Units in the hidden layer of each head."""

    @abc.abstractmethod
    def torso(self, pixels: jax.Array, layers: Layers) -> jax.Array:
        """Turns pixels, float32 [B, 84, 84, 4], into an embedding [B, D]."""


@dataclasses.dataclass(frozen=True)
class Convolutional(Architecture):
    """Convolutions without padding, one after the other (Mnih et al. 2013 and 2015)."""

    convs: tuple[tuple[int, int, int], ...]  # channels, kernel, stride
    hidden: int = 512

    def torso(self, pixels: jax.Array, layers: Layers) -> jax.Array:
        """A convolution and a rectifier for each layer."""
        x = pixels
        for i, (channels, kernel, stride) in enumerate(self.convs):
            conv = layers.Conv2D(channels, kernel, stride, padding="VALID", name=f"conv_{i}")
            x = jax.nn.relu(conv(x))
        return hk.Flatten()(x)


@dataclasses.dataclass(frozen=True)
class Residual(Architecture):
    """The deep torso of IMPALA (Espeholt et al. 2018): sections of two residual blocks."""

    channels: tuple[int, ...] = (16, 32, 32)
    hidden: int = 256

    def torso(self, pixels: jax.Array, layers: Layers) -> jax.Array:
        """A convolution, a pooling and two residual blocks in each section."""
        x = pixels
        for i, channels in enumerate(self.channels):
            with hk.name_scope(f"section_{i}"):
                x = layers.Conv2D(channels, 3, name="conv")(x)
                x = hk.max_pool(x, window_shape=3, strides=2, padding="SAME")
                for j in range(2):
                    x = self._block(f"block_{j}", x, layers)
        return hk.Flatten()(jax.nn.relu(x))

    def _block(self, name: str, x: jax.Array, layers: Layers) -> jax.Array:
        with hk.name_scope(name):
            y = layers.Conv2D(x.shape[-1], 3, name="conv_0")(jax.nn.relu(x))
            return x + layers.Conv2D(x.shape[-1], 3, name="conv_1")(jax.nn.relu(y))


NETWORKS: Mapping[str, Architecture] = MappingProxyType(
    {
        "nature": Convolutional(convs=((32, 8, 4), (64, 4, 2), (64, 3, 1))),
        "nips2013": Convolutional(convs=((16, 8, 4), (32, 4, 2)), hidden=256),
        # nips2013 with half the hidden units: half the parameters, and a quicker update.
        "small": Convolutional(convs=((16, 8, 4), (32, 4, 2)), hidden=128),
        # Real but quick to compile: for tests and first tries.
        "tiny": Convolutional(convs=((4, 8, 8), (8, 4, 2)), hidden=16),
        "impala": Residual(),
    }
)


def scaled_pixels(stack: jax.Array, *, normalize: bool) -> jax.Array:
    """A stack's frames as channels, float32 [B, 84, 84, 4] between 0 and 1, or standardized."""
    x = jnp.moveaxis(stack, 1, -1).astype(jnp.float32) / 255.0
    return standardize(x, every_fourth=lambda x: x[:, ::4, ::4]) if normalize else x


def standardize(x: jax.Array, *, every_fourth: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Zero mean and unit variance for every stack, both taken over every fourth pixel of each axis.

    On a plain background of gray, a filter of the first layer is either always on or always off:
    what moves is too small to turn it. Half of them start dead, and more die while learning.
    Every fourth pixel tells the background as well as all of them, at a sixteenth of the cost.
    """
    # Not a matter of speed alone: this is the function that stored checkpoints were trained with,
    # so every backend has to compute it.
    x = x - jnp.mean(every_fourth(x), axis=(1, 2, 3), keepdims=True)
    variance = jnp.mean(jnp.square(every_fourth(x)), axis=(1, 2, 3), keepdims=True)
    return x * jax.lax.rsqrt(variance + _MIN_VARIANCE)


PLAIN_LAYERS = Layers(Conv2D=hk.Conv2D, Linear=hk.Linear, pixels=scaled_pixels)


def make_network(
    architecture: Architecture,
    num_actions: int,
    *,
    value_head: bool,
    behavior_head: bool,
    normalize: bool = False,
    layers: Layers = PLAIN_LAYERS,
) -> Network:
    """Builds a network with just the heads an algorithm needs.

    `normalize` standardizes every stack of frames, puts a layer normalization before the
    non-linearity of every head, and starts the heads' outputs at zero.
    """
    head = functools.partial(_head, hidden=architecture.hidden, normalize=normalize, layers=layers)

    def embedding(stack: jax.Array) -> jax.Array:
        chex.assert_shape(stack, (None, *OBSERVATION_SHAPE))
        with hk.name_scope("torso"):
            return architecture.torso(layers.pixels(stack, normalize=normalize), layers)

    def heads(stack: jax.Array) -> Heads:
        x = embedding(stack)
        advantage = head("advantage", x, outputs=num_actions)
        value, logits = jnp.zeros(advantage.shape[0]), jnp.zeros_like(advantage)
        if value_head:
            value = head("value", x, outputs=1)[:, 0]
        if behavior_head:
            # The likelihood of the behavior must never shape the torso. The module keeps the
            # spelling of the checkpoints that hold it.
            logits = head("behaviour", jax.lax.stop_gradient(x), outputs=num_actions)
        return Heads(value=value, advantage=advantage, logits=logits)

    def advantage(stack: jax.Array) -> jax.Array:
        return head("advantage", embedding(stack), outputs=num_actions)

    heads_fn: hk.Transformed = hk.without_apply_rng(hk.transform(heads))
    advantage_fn: hk.Transformed = hk.without_apply_rng(hk.transform(advantage))
    return Network(
        init=lambda key: heads_fn.init(key, jnp.zeros((1, *OBSERVATION_SHAPE), jnp.uint8)),
        apply=heads_fn.apply,
        advantage=advantage_fn.apply,
    )


def _head(
    name: str, x: jax.Array, *, hidden: int, outputs: int, normalize: bool, layers: Layers
) -> jax.Array:
    with hk.name_scope(name):
        x = layers.Linear(hidden, name="hidden")(x)
        out_init = None
        if normalize:
            x = hk.LayerNorm(-1, create_scale=True, create_offset=True, name="norm")(x)
            # Hidden units of unit scale would make random outputs far larger than any true
            # advantage, and acting greedily on them would be all there is to unlearn at first.
            out_init = hk.initializers.Constant(0.0)
        return layers.Linear(outputs, w_init=out_init, name="out")(jax.nn.relu(x))
