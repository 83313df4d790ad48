"""What an agent makes of what it sees: V, A, mu and Q of stacks, as far as it has learned them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from launch import build
from launch.config import Config
from launch.names import find_loss
from learner.acting import acting_params
from learner.networks import Network


class Heads(NamedTuple):
    """Of one stack, or of a batch with its axis in front; what its algorithm has not is None.

    V + A = Q. A raw A may drift by a constant; less its mean under the baseline it cannot.
    """

    value: np.ndarray | None  # float32 []: V(x)
    advantage: np.ndarray | None  # float32 [actions]: A(x, .)
    mu: np.ndarray | None  # float32 [actions]: mu(.|x), the average behavior
    q: np.ndarray | None  # float32 [actions]: Q(x, .)


HeadsFn = Callable[[np.ndarray], Heads]


def make_heads(config: Config, params: Any) -> HeadsFn:
    """The heads of a batch of stacks, uint8 [B, 4, 84, 84]; jitted once."""
    loss, network = find_loss(config.learner.algorithm), build.network_of(config)
    if loss.value_head and params.keys() == acting_params(params).keys():
        return _acting_heads(network, params)

    @jax.jit
    def see(params: Any, stacks: jax.Array) -> Any:
        heads = network.apply(params, stacks)
        return heads.value, jax.nn.softmax(heads.logits), jax.vmap(loss.q_values)(heads)

    def heads_of(stacks: np.ndarray) -> Heads:
        value, mu, q = jax.device_get(see(params, stacks))
        return Heads(
            value=value if loss.value_head else None,
            advantage=q - value[:, None] if loss.value_head else None,
            mu=mu if loss.behavior_head else None,
            q=q,
        )

    return heads_of


def _acting_heads(network: Network, params: Any) -> HeadsFn:
    """Of parameters that only act: neither V nor mu, and A less its mean over actions."""
    see = jax.jit(network.advantage)

    def heads_of(stacks: np.ndarray) -> Heads:
        advantage = np.asarray(see(params, stacks))
        return Heads(
            value=None,
            advantage=advantage - advantage.mean(axis=1, keepdims=True),
            mu=None,
            q=None,
        )

    return heads_of
