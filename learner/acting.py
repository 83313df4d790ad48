"""What acting needs of a network: the torso and the advantage head, as one flat vector on its way.

argmax A = argmax Q, so an actor holds neither V nor mu. The learner broadcasts `flatten_acting`,
and whoever plays turns it back with `make_unflatten`.
"""

from collections.abc import Callable
from typing import Any

import haiku as hk
import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from learner.networks import Network

_ACTING_MODULES = ("torso", "advantage")


def acting_params(params: hk.Params) -> dict[str, Any]:
    """The parameters an actor needs, under their own names."""
    return {name: leaf for name, leaf in params.items() if name.split("/")[0] in _ACTING_MODULES}


def num_acting_values(network: Network) -> int:
    """Length of the flat vector."""
    return sum(leaf.size for leaf in jax.tree.leaves(_acting_shapes(network)))


def flatten_acting(params: hk.Params) -> jax.Array:
    """The acting parameters as one flat vector, to be broadcast."""
    return ravel_pytree(acting_params(params))[0]


def make_unflatten(network: Network) -> Callable[[np.ndarray], dict[str, Any]]:
    """Turns a flat vector back into acting parameters."""
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), _acting_shapes(network))
    return ravel_pytree(zeros)[1]


def make_greedy(network: Network) -> Callable[[hk.Params, np.ndarray], np.ndarray]:
    """Greedy actions, int32 [B], for a batch of stacks; jitted once."""
    greedy = jax.jit(lambda params, stacks: network.advantage(params, stacks).argmax(axis=1))
    return lambda params, stacks: np.asarray(greedy(params, stacks), np.int32)


def _acting_shapes(network: Network) -> Any:
    return acting_params(jax.eval_shape(network.init, jax.random.PRNGKey(0)))
