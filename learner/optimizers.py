"""Optimizers by name. `rmsprop` is the paper's: centered, decay 0.95, eps inside the root."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import optax

Rate: TypeAlias = float | Callable[[Any], Any]  # fixed, or a function of the update count


def _rmsprop(learning_rate: Rate, epsilon: float) -> optax.GradientTransformation:
    # The paper's agents keep eps under the square root: g / sqrt(var + eps).
    return optax.rmsprop(learning_rate, decay=0.95, eps=epsilon, centered=True, eps_in_sqrt=True)


def _adam(learning_rate: Rate, epsilon: float) -> optax.GradientTransformation:
    return optax.adam(learning_rate, eps=epsilon)


OPTIMIZERS: Mapping[str, Callable[[Rate, float], optax.GradientTransformation]] = MappingProxyType(
    {"rmsprop": _rmsprop, "adam": _adam}
)


def falling_rate(initial: float, final: float | None, num_updates: int) -> Rate:
    """A learning rate that falls in a straight line over so many updates; None keeps it."""
    if final is None:
        return initial
    return optax.linear_schedule(initial, final, num_updates)


def make_optimizer(
    name: str, *, learning_rate: Rate, epsilon: float, max_grad_norm: float | None
) -> optax.GradientTransformation:
    """Builds an optimizer, with the global norm of the gradient clipped if asked."""
    optimizer = OPTIMIZERS[name](learning_rate, epsilon)
    if max_grad_norm is None:
        return optimizer
    return optax.chain(optax.clip_by_global_norm(max_grad_norm), optimizer)
