"""The loop, the prefetch thread and a slow transfer: a batch is on its way while one is used.

Threads meet at events; the limit in seconds is only reached if something is broken.
"""

import itertools
import threading
import types
from concurrent.futures import Future
from typing import Any

import jax.numpy as jnp
import numpy as np

from learner.loop import Batch, Edges, Periods, run_learner
from learner.prefetch import Prefetcher
from learner.step_counter import StepCounter
from learner.update import LearnerState, UpdateResult

LIMIT = 30.0
UPDATES = 5


class Link:
    """Transfers one batch at a time; each takes until the update of the one before has begun."""

    def __init__(self) -> None:
        self.begun = [threading.Event() for _ in range(UPDATES + 3)]
        self.updating = [threading.Event() for _ in range(UPDATES + 3)]
        self.numbers = itertools.count()
        self.overlapped: list[int] = []

    def transfer(self) -> Batch | None:
        number = next(self.numbers)
        if number > UPDATES:
            return None
        self.begun[number].set()
        if number > 0:
            assert self.updating[number - 1].wait(LIMIT)
        return Batch(number, np.ones(1), np.zeros(1, np.uint64))  # type: ignore[arg-type]

    def update(self, state: LearnerState, number: Any, weights: Any) -> Any:
        self.updating[number].set()
        assert self.begun[number + 1].wait(LIMIT), "the next transfer waits for this update"
        self.overlapped.append(number)
        return state._replace(updates=state.updates + 1), UpdateResult(jnp.zeros(1), {})


def test_the_next_transfer_begins_before_the_present_update_is_done() -> None:
    link, saved = Link(), Future[int]()
    saved.set_result(0)
    with Prefetcher(link.transfer) as prefetcher:
        run_learner(
            state=LearnerState({}, {}, (), jnp.int32(0)),
            update=link.update,
            steps=StepCounter(),
            edges=Edges(
                next_batch=prefetcher.get,
                read_counts=lambda: types.SimpleNamespace(inserts=0, samples=0),
                publish=lambda state, progress: None,
                report=lambda row: None,
                start_save=lambda state, steps: saved,
                save_and_wait=lambda state, steps: 0,
                update_priorities=None,
                should_stop=lambda: len(link.overlapped) == UPDATES,
            ),
            periods=Periods(
                total_steps=10**9,
                warmup_steps=0,
                publish_updates=10**9,
                report_seconds=1e9,
                save_seconds=1e9,
            ),
        )
    assert link.overlapped == list(range(UPDATES))
