"""The learner's loop: take a batch, update, now and then publish, report and checkpoint.

The loop knows no transport: every edge is a callable of `Edges`. It alone owns the global step
count and decides when training is over.
"""

import dataclasses
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from learner.divergence import DivergedError, all_finite
from learner.step_counter import StepCounter
from learner.transitions import Column, Transition
from learner.update import LearnerState, Update, UpdateResult


class Batch(NamedTuple):
    """A sampled batch on the device, with what prioritized replay needs to answer."""

    transition: Transition
    weights: Column  # float32 [B]
    keys: np.ndarray  # uint64 [B]: replay keys, for new priorities


class ReplayCounts(Protocol):
    """What replay has counted, whatever else it counts."""

    @property
    def inserts(self) -> int:
        """Agent steps that were ever inserted."""

    @property
    def samples(self) -> int:
        """Transitions that were ever sampled."""


class Progress(NamedTuple):
    """How far training is when parameters are published."""

    updates: int  # the loop's own count: reading the state's would wait for the device
    steps: int  # global agent steps
    finished: bool


@dataclasses.dataclass(frozen=True)
class Edges:
    """Everything the loop reaches outside itself."""

    next_batch: Callable[[float], Batch | None]
    read_counts: Callable[[], ReplayCounts | None]  # None while the server does not answer
    publish: Callable[[LearnerState, Progress], None]
    report: Callable[[dict[str, Any]], None]
    # Both give the bytes written. The first returns as soon as the next update may take over the
    # state, the other when all is on disk.
    start_save: Callable[[LearnerState, StepCounter], Future[int]]
    save_and_wait: Callable[[LearnerState, StepCounter], int]
    update_priorities: Callable[[np.ndarray, jax.Array], None] | None
    should_stop: Callable[[], bool]


@dataclasses.dataclass(frozen=True)
class Periods:
    """How often the loop does what is not an update."""

    total_steps: int
    warmup_steps: int  # inserts before the first sample; they do not count towards the ratio
    publish_updates: int
    report_seconds: float
    save_seconds: float
    updates_per_batch: int = 1  # how many updates a call of `update` makes
    idle_seconds: float = 1.0  # longest wait for a batch before looking around
    # At the start, while idle and at the end too. Without, what is published when depends on the
    # updates alone: a run that is interrupted and resumed must not publish more often.
    publish_between: bool = True
    # So near the end every update asks whether it was the last: more than is inserted between two
    # versions.
    closing_steps: int = 0


def run_learner(
    *,
    state: LearnerState,
    update: Update,
    steps: StepCounter,
    edges: Edges,
    periods: Periods,
    clock: Callable[[], float] = time.monotonic,
) -> LearnerState:
    """Runs until the global step count reaches its total, or until told to stop."""
    loop = _Loop(steps, edges, periods, clock)
    loop.start(state)
    while not (edges.should_stop() or loop.finished):
        batch = loop.next_batch()
        if batch is None:
            loop.idle(state)
            continue
        state, result = update(state, batch.transition, batch.weights)
        if edges.update_priorities is not None:
            edges.update_priorities(batch.keys, result.td)
        loop.updated(state, result)
    loop.close(state)
    return state


class _Loop:
    """The bookkeeping between updates."""

    def __init__(
        self, steps: StepCounter, edges: Edges, periods: Periods, clock: Callable[[], float]
    ):
        self._steps, self._edges, self._periods, self._clock = steps, edges, periods, clock
        self._waited_seconds = 0.0
        # Decided when parameters are published, not when the clock asks for a report: the number of
        # updates of a deterministic run must not depend on how fast it ran.
        self.finished = False
        self._updates = 0
        self._counts: ReplayCounts | None = None
        self._result: UpdateResult | None = None
        self._saving: Future[int] | None = None  # the checkpoint that is being written
        self._save_cost: dict[str, float] = {}  # of the last one, until it is reported

    def start(self, state: LearnerState) -> None:
        self._updates = self._reported_updates = int(state.updates)
        self._reported_at = self._clock()
        self._save_due_at = self._reported_at + self._periods.save_seconds
        if self._periods.publish_between:
            self._publish(state)

    def next_batch(self) -> Batch | None:
        """The next batch, or None. Waiting counts from when the device has nothing to compute."""
        batch = self._take(timeout_seconds=0.0)
        if batch is not None:
            return batch
        jax.block_until_ready(self._result)
        return self._take(timeout_seconds=self._periods.idle_seconds)

    def updated(self, state: LearnerState, result: UpdateResult) -> None:
        published = self._updates // self._periods.publish_updates
        self._updates += self._periods.updates_per_batch
        self._result = result
        if self._updates // self._periods.publish_updates > published:
            self._publish(state)
        else:
            self._publish_if_last(state)
        self._report_if_due()
        self._save_if_due(state)

    def idle(self, state: LearnerState) -> None:
        """No data yet: actors still need the step count, and to hear that we are alive."""
        if self._periods.publish_between:
            self._publish(state)
        else:
            self._publish_if_last(state)
        self._report_if_due()
        self._save_if_due(state)

    def close(self, state: LearnerState) -> None:
        # When finished, these very parameters were just published, as the last ones.
        if self._periods.publish_between and not self.finished:
            self._publish(state)
        self._save_and_wait(state)
        self._report()

    def _take(self, *, timeout_seconds: float) -> Batch | None:
        before = self._clock()
        batch = self._edges.next_batch(timeout_seconds)
        self._waited_seconds += self._clock() - before
        return batch

    def _publish_if_last(self, state: LearnerState) -> None:
        if self._steps.total + self._periods.closing_steps < self._periods.total_steps:
            return
        self._read_counts()
        if self._steps.total >= self._periods.total_steps:
            self._publish(state)

    def _publish(self, state: LearnerState) -> None:
        self._read_counts()
        self.finished = self._steps.total >= self._periods.total_steps
        self._edges.publish(state, Progress(self._updates, self._steps.total, self.finished))

    def _read_counts(self) -> None:
        counts = self._edges.read_counts()
        if counts is not None:
            self._counts = counts
            self._steps.observe(counts.inserts)

    def _save_if_due(self, state: LearnerState) -> None:
        self._settle_save()
        if self._clock() < self._save_due_at:
            return
        self._save_due_at = self._clock() + self._periods.save_seconds
        if self._saving is not None:
            logging.warning("the last checkpoint is still being written: the disk is slow or hangs")
            return
        self._read_counts()
        jax.block_until_ready(self._result)  # the device may go on; only what follows is a loss
        before = self._clock()
        self._saving = self._edges.start_save(state, self._steps)
        self._save_cost = {"checkpoint_seconds": self._clock() - before}

    def _settle_save(self) -> None:
        """Takes in how the checkpoint under way ended, if it did."""
        if self._saving is None or not self._saving.done():
            return
        try:
            self._save_cost["checkpoint_bytes"] = self._saving.result()
        except OSError as error:
            # A full disk must not end the training; only the last save has to succeed.
            logging.error("no checkpoint was written: %s", error)
            self._save_cost = {"checkpoint_failed": 1}
        self._saving = None

    def _save_and_wait(self, state: LearnerState) -> None:
        jax.block_until_ready(self._result)
        before = self._clock()
        size_bytes = self._edges.save_and_wait(state, self._steps)
        self._settle_save()
        seconds = self._clock() - before
        self._save_cost = {"checkpoint_seconds": seconds, "checkpoint_bytes": size_bytes}

    def _report_if_due(self) -> None:
        if self._clock() - self._reported_at >= self._periods.report_seconds:
            self._read_counts()
            self._report()

    def _report(self) -> None:
        # Reading the scalars waits for the device, so that the time covers the updates counted.
        scalars = jax.device_get(self._result.scalars) if self._result is not None else {}
        if not all_finite(scalars):
            raise DivergedError(self._updates)
        now = self._clock()
        seconds = max(now - self._reported_at, 1e-9)
        row: dict[str, Any] = {
            "steps": self._steps.total,
            "updates": self._updates,
            "updates_per_second": (self._updates - self._reported_updates) / seconds,
            "data_wait_fraction": min(self._waited_seconds / seconds, 1.0),
        }
        if self._counts is not None and self._counts.inserts > self._periods.warmup_steps:
            inserts = self._counts.inserts - self._periods.warmup_steps
            row["samples_per_insert"] = self._counts.samples / inserts
        row |= {name: float(scalar) for name, scalar in scalars.items()}
        if self._saving is None:
            row |= self._save_cost
            self._save_cost = {}
        self._edges.report(row)
        self._reported_at, self._reported_updates, self._waited_seconds = now, self._updates, 0.0
