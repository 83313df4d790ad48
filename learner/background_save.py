"""Checkpoints written while the learner goes on.

The state is copied on the device, which takes milliseconds; a thread brings the copy to the host
and to disk. The learner's own buffers are free for the next update at once.
"""

import dataclasses
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import jax.numpy as jnp

from learner.step_counter import StepCounter
from learner.update import LearnerState

_WRITE_SECONDS = 600.0  # bounds the wait for a disk that hangs

Write = Callable[[LearnerState, StepCounter], int]  # returns the bytes written


class BackgroundSave:
    """Hands copies to one thread, which writes them one after the other."""

    def __init__(self, write: Write):
        self._write = write
        self._copy = jax.jit(lambda state: jax.tree.map(jnp.copy, state))
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="save")

    def start(self, state: LearnerState, steps: StepCounter) -> Future[int]:
        """Returns once the state is copied; whatever goes wrong later is in the result."""
        copy = jax.block_until_ready(self._copy(state))
        return self._thread.submit(self._write, copy, dataclasses.replace(steps))

    def finish(self, state: LearnerState, steps: StepCounter) -> int:
        """Returns when this one, and all that were started before it, are on disk."""
        return self.start(state, steps).result(_WRITE_SECONDS)


def finished_save(write: Write, state: LearnerState, steps: StepCounter) -> Future[int]:
    """`start` of a learner that stands still until the write is over."""
    written: Future[int] = Future()
    try:
        written.set_result(write(state, steps))
    except Exception as error:
        written.set_exception(error)
    return written
