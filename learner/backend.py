"""The one gate: how the platform of this process computes what every platform means.

Networks and optimizers are plain Haiku and Optax, and that is what an accelerator gets. On CPU
the quicker twins in `learner.cpu` take their place, with the same parameters and state. They are
imported here, when they are asked for, and nowhere else; actors never load Numba, which only an
update needs.
"""

from collections.abc import Callable
from typing import NamedTuple

from learner.cutting import TakeStacks, take_on_device
from learner.networks import PLAIN_LAYERS, Layers
from learner.optimizers import OptimizerOptions, Step, make_optimizer, optax_step


class Backend(NamedTuple):
    """What depends on the platform that computes."""

    layers: Layers
    make_step: Callable[[OptimizerOptions], Step]  # for the state of `make_optimizer`
    unroll_updates: bool  # see `learner.update.repeat_update`
    take_stacks: TakeStacks  # frames of sampled items into stacks on the device
    prepare_process: Callable[[], None]  # to be called by a process before it updates


def backend_for(platform: str) -> Backend:
    """The backend of a JAX platform: of the one that this process computes on."""
    return _cpu() if platform == "cpu" else PLAIN


def _plain_step(options: OptimizerOptions) -> Step:
    return optax_step(make_optimizer(options))


PLAIN = Backend(
    layers=PLAIN_LAYERS,
    make_step=_plain_step,
    unroll_updates=False,
    take_stacks=take_on_device,
    prepare_process=lambda: None,
)


def _cpu() -> Backend:
    from learner.cpu.allocator import keep_freed_memory
    from learner.cpu.layers import LAYERS
    from learner.cpu.stacks import take_on_host

    return Backend(
        layers=LAYERS,
        make_step=_fused_step,
        unroll_updates=True,  # convolutions in a loop of XLA's take seven times as long there
        take_stacks=take_on_host,
        prepare_process=keep_freed_memory,
    )


def _fused_step(options: OptimizerOptions) -> Step:
    from learner.cpu.optimizer import FUSED, fused_step  # loads Numba: 50 MB

    return fused_step(options) if options.name in FUSED else _plain_step(options)
