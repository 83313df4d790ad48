"""A step of RMSProp or Adam in one pass over memory, on CPU.

XLA's CPU backend makes a loop for each of the three results (parameters and two moments) and does
not vectorize them: each result takes the place of an operand, and it cannot see that the two are
the same memory, element by element, and not shifted against each other. Here one compiled loop
reads a gradient once and does it all, in place. The state is Optax's own, and a test holds the
steps equal.
"""

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import chex
import haiku as hk
import jax
import jax.numpy as jnp
import optax

from learner.cpu import ffi, sweeps
from learner.optimizers import ADAM_DECAYS, OptimizerOptions, Step, Stepped

_LARGE_BYTES = 2**20
_KERNEL_RANK = 4  # a convolution's weights


class _Leaf(NamedTuple):
    """What a step reads of one array of parameters."""

    params: jax.Array
    mu: jax.Array
    nu: jax.Array
    gradient: jax.Array

    @property
    def is_large(self) -> bool:
        return self.params.nbytes >= _LARGE_BYTES


class _Swept(NamedTuple):
    """The array after the step, and the sum of the gradient's squares."""

    params: jax.Array
    mu: jax.Array
    nu: jax.Array
    squares: jax.Array


def fused_step(options: OptimizerOptions) -> Step:
    """The step of `learner.optimizers.make_optimizer`'s optimizer of the same options."""
    sweep = _kernel(options.name)

    def step(gradients: hk.Params, opt_state: Any, params: hk.Params) -> Stepped:
        # Optax nests: clipping (no state) around moments, learning rate, and what has no state.
        clips = options.max_grad_norm is not None
        clipping, inner = opt_state if clips else (None, opt_state)
        moments, schedule, *rest = inner
        constants = _constants(options, gradients, moments, schedule)
        tree = jax.tree.structure(params)
        columns = map(jax.tree.leaves, (params, moments.mu, moments.nu, gradients))
        leaves = [_Leaf(*leaf) for leaf in zip(*columns, strict=True)]
        swept = _sweep_all(sweep, leaves, constants)
        new, mu, nu, squares = map(list, zip(*swept, strict=True))
        moments = moments._replace(mu=jax.tree.unflatten(tree, mu), nu=jax.tree.unflatten(tree, nu))
        inner = (_counted(moments), _counted(schedule), *rest)
        opt_state = (clipping, inner) if clips else inner
        return Stepped(jax.tree.unflatten(tree, new), opt_state, jnp.sqrt(sum(squares)))

    return step


def _sweep_all(
    sweep: Callable[..., _Swept], leaves: list[_Leaf], constants: jax.Array
) -> list[_Swept]:
    """Sweeps small leaves at once, and large ones after the last convolution's.

    A sweep keeps one thread to itself, and XLA starts what is ready first. The last convolution's
    gradient comes early; a large sweep that waits for it runs beside the other convolutions'
    gradients, which the other threads can share.
    """
    swept = {i: sweep(leaf, constants) for i, leaf in enumerate(leaves) if not leaf.is_large}
    kernels = [swept[i].squares for i in swept if leaves[i].params.ndim == _KERNEL_RANK]
    for i in set(range(len(leaves))) - set(swept):
        swept[i] = sweep(leaves[i], constants, *kernels[-1:])
    return [swept[i] for i in range(len(leaves))]


def _constants(
    options: OptimizerOptions, gradients: hk.Params, moments: Any, schedule: Any
) -> jax.Array:
    """What a sweep is told beside the arrays: rate, epsilon, scale of the gradient, corrections."""
    rate = options.learning_rate
    if callable(rate):
        rate = rate(schedule.count)
    scale = jnp.float32(1.0)
    if options.max_grad_norm is not None:
        scale = jnp.minimum(options.max_grad_norm / _global_norm(gradients), 1.0)
    numbers = (rate, options.epsilon, scale, *_bias_corrections(moments))
    return jnp.stack([jnp.asarray(number, jnp.float32) for number in numbers])


def _global_norm(gradients: hk.Params) -> jax.Array:
    """`optax.global_norm` by rows: XLA's plain sum is not vectorized on CPU (4x the time)."""

    def sum_of_squares(x: jax.Array) -> jax.Array:
        rows = x.reshape(math.gcd(x.size, 32), -1)
        return jnp.sum(sum(row * row for row in rows))

    return jnp.sqrt(sum(map(sum_of_squares, jax.tree.leaves(gradients))))


def _bias_corrections(moments: Any) -> tuple[Any, ...]:
    """What Adam multiplies its two moments by; RMSProp has none."""
    if "count" not in moments._fields:
        return (1.0, 1.0)
    count = optax.safe_increment(moments.count)
    return tuple(1.0 / (1.0 - decay**count) for decay in ADAM_DECAYS)


def _counted(state: Any) -> Any:
    """A state after one more step, where it counts them."""
    if "count" not in state._fields:  # every tuple has a method of that name
        return state
    return state._replace(count=optax.safe_increment(state.count))


@functools.cache
def _kernel(name: str) -> Callable[..., _Swept]:
    """`sweep(leaf, constants, *after)`, which starts once the values `after` are there."""
    target = f"vantage_{name}"
    ffi.register(target, _HANDLERS[name])

    def sweep(leaf: _Leaf, constants: jax.Array, *after: jax.Array) -> _Swept:
        chex.assert_type([*leaf, constants], jnp.float32)  # the kernel reads them as nothing else
        like = jax.ShapeDtypeStruct(leaf.params.shape, jnp.float32)
        call = jax.ffi.ffi_call(
            target,
            (like, like, like, jax.ShapeDtypeStruct((), jnp.float32)),
            input_output_aliases={0: 0, 1: 1, 2: 2},
        )
        return _Swept(*call(*leaf, constants, *after))

    return sweep


def _rmsprop_handler(frame: int) -> int:
    if not ffi.asks_for_version(frame):
        sweeps.sweep(frame, sweeps.rmsprop)
    return 0


def _adam_handler(frame: int) -> int:
    if not ffi.asks_for_version(frame):
        sweeps.sweep(frame, sweeps.adam)
    return 0


_HANDLERS: Mapping[str, Callable[[int], int]] = MappingProxyType(
    {"rmsprop": _rmsprop_handler, "adam": _adam_handler}
)
FUSED = frozenset(_HANDLERS)  # optimizers that have a fused step
