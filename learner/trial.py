"""Tries a part of the user's own on abstract inputs, before anything is started with it.

Shapes only: nothing is computed and no device is touched, so a launcher may do it too.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from learner.losses import Errors, Heads, Loss
from learner.networks import OBSERVATION_SHAPE, Architecture, make_network

_NUM_ACTIONS = 3


def try_loss(loss: Loss) -> None:
    """Raises ValueError, in one line, for a method that fails or returns another shape."""
    scalar, per_action = _floats(), _floats(_NUM_ACTIONS)
    heads = Heads(value=scalar, advantage=per_action, logits=per_action)
    for name in ("q_values", "bootstrap_policy"):
        returned = _traced(name, getattr(loss, name), heads)
        if _shapes(returned) != (_NUM_ACTIONS,):
            raise ValueError(f"{name} must return an array [A], not {_shapes(returned)}")
    action = jax.ShapeDtypeStruct((), jnp.int32)
    errors = _traced("errors", loss.errors, heads, action, scalar)
    if not isinstance(errors, Errors) or errors.td.shape or len(errors.regressed.shape) != 1:
        raise ValueError(f"errors must return Errors(regressed [k], td []), not {_shapes(errors)}")


def try_architecture(architecture: Architecture) -> None:
    """Raises ValueError, in one line, for an architecture no network can be made of."""
    network = _called(
        "make_network",
        make_network,
        architecture,
        _NUM_ACTIONS,
        value_head=True,
        behavior_head=True,
    )
    params = _traced("init", network.init, jax.ShapeDtypeStruct((2,), jnp.uint32))
    empty = [name for name, layer in params.items() if not all(w.size for w in layer.values())]
    if empty:
        raise ValueError(f"nothing is left of the picture where {empty[0]} begins")
    batch = 2
    stacks = jax.ShapeDtypeStruct((batch, *OBSERVATION_SHAPE), jnp.uint8)
    heads = _traced("apply", network.apply, params, stacks)
    if heads.advantage.shape != (batch, _NUM_ACTIONS):
        raise ValueError("torso must return an embedding [B, D]; flatten it")


def _floats(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _traced(name: str, fn: Callable[..., Any], *args: Any) -> Any:
    return _called(name, jax.eval_shape, fn, *args)


def _called(name: str, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return fn(*args, **kwargs)
    except Exception as error:  # whatever a stranger's code raises
        reason = (str(error).splitlines() or [""])[0]
        raise ValueError(f"{name} fails: {type(error).__name__}: {reason}") from error


def _shapes(returned: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf.shape, returned)
