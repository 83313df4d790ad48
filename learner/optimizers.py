"""Optimizers by name. `rmsprop` is the paper's: centered, decay 0.95, eps inside the root."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import haiku as hk
import jax
import optax

Rate: TypeAlias = float | Callable[[Any], Any]  # fixed, or a function of the update count

RMSPROP_DECAY = 0.95
ADAM_DECAYS = (0.9, 0.999)


class OptimizerOptions(NamedTuple):
    """Which optimizer, and its hyperparameters."""

    name: str
    learning_rate: Rate
    epsilon: float
    max_grad_norm: float | None = None  # what the global norm of the gradient is clipped to


class Stepped(NamedTuple):
    """What an optimizer makes of a gradient."""

    params: hk.Params
    opt_state: optax.OptState
    grad_norm: jax.Array  # []: over all leaves, before any clipping


Step = Callable[[hk.Params, optax.OptState, hk.Params], Stepped]  # gradients, state, parameters


def _rmsprop(learning_rate: Rate, epsilon: float) -> optax.GradientTransformation:
    # The paper's agents keep eps under the square root: g / sqrt(var + eps).
    return optax.rmsprop(
        learning_rate, decay=RMSPROP_DECAY, eps=epsilon, centered=True, eps_in_sqrt=True
    )


def _adam(learning_rate: Rate, epsilon: float) -> optax.GradientTransformation:
    first, second = ADAM_DECAYS
    return optax.adam(learning_rate, b1=first, b2=second, eps=epsilon)


OPTIMIZERS: Mapping[str, Callable[[Rate, float], optax.GradientTransformation]] = MappingProxyType(
    {"rmsprop": _rmsprop, "adam": _adam}
)


def falling_rate(initial: float, final: float | None, num_updates: int) -> Rate:
    """A learning rate that falls linearly over `num_updates`; it stays where `final` is None."""
    if final is None:
        return initial
    return optax.linear_schedule(initial, final, num_updates)


def make_optimizer(options: OptimizerOptions) -> optax.GradientTransformation:
    """Builds an optimizer, with the global norm of the gradient clipped if asked."""
    optimizer = OPTIMIZERS[options.name](options.learning_rate, options.epsilon)
    if options.max_grad_norm is None:
        return optimizer
    return optax.chain(optax.clip_by_global_norm(options.max_grad_norm), optimizer)


def optax_step(optimizer: optax.GradientTransformation) -> Step:
    """The step of any Optax optimizer."""

    def step(gradients: hk.Params, opt_state: optax.OptState, params: hk.Params) -> Stepped:
        direction, opt_state = optimizer.update(gradients, opt_state, params)
        params = optax.apply_updates(params, direction)
        return Stepped(params, opt_state, optax.global_norm(gradients))

    return step
