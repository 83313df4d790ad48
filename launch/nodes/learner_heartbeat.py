"""The learner's heartbeat: the edges of its loop, each of which says when the loop passes it.

Its checkpoints are written by a thread, which has a heartbeat of its own.
"""

import dataclasses
from collections.abc import Callable

import jax

from launch.heartbeat import Heartbeat, Phase
from learner.background_save import Write
from learner.loop import Batch, Edges, ReplayCounts
from learner.step_counter import StepCounter
from learner.transitions import Column, Transition
from learner.update import LearnerState, Update, UpdateResult


def of_background_save(heartbeat: Heartbeat, save: Write) -> Write:
    """The same write of a checkpoint, heard: a disk may hang while the updates go on."""

    def heard(state: LearnerState, steps: StepCounter) -> int:
        heartbeat.beat(Phase.SAVING)
        try:
            return save(state, steps)
        finally:
            heartbeat.beat(Phase.SAVED)

    return heard


class LearnerHeartbeat:
    """Beats as the loop updates, waits and saves; not when it only looks busy.

    A loop that waits for data goes round, but what brings the data may hang. While replay answers,
    waiting counts only if the source of batches has come round too, with a batch or without.
    """

    def __init__(
        self,
        heartbeat: Heartbeat,
        *,
        updates: int,
        updates_per_call: int,
        source_rounds: Callable[[], int],
    ):
        self._heartbeat = heartbeat
        self._updates, self._updates_per_call = updates, updates_per_call
        self._source_rounds = source_rounds
        self._rounds_seen = -1
        self._replay_answers = True
        self._compiled = False

    def of_edges(self, edges: Edges) -> Edges:
        """The same edges, heard."""

        def next_batch(timeout_seconds: float) -> Batch | None:
            batch = edges.next_batch(timeout_seconds)
            if batch is None and timeout_seconds > 0.0:
                self._waited()
            return batch

        def read_counts() -> ReplayCounts | None:
            counts = edges.read_counts()
            if (counts is not None) != self._replay_answers:
                self._rounds_seen = -1  # the source gets its time from here on
            self._replay_answers = counts is not None
            return counts

        def save_and_wait(state: LearnerState, steps: StepCounter) -> int:
            self._heartbeat.beat(Phase.SAVING)
            return edges.save_and_wait(state, steps)

        return dataclasses.replace(
            edges, next_batch=next_batch, read_counts=read_counts, save_and_wait=save_and_wait
        )

    def of_update(self, update: Update) -> Update:
        """The same update, heard."""

        def heard(
            state: LearnerState, transition: Transition, weights: Column
        ) -> tuple[LearnerState, UpdateResult]:
            if not self._compiled:
                self._heartbeat.beat(Phase.COMPILING)
            state, result = update(state, transition, weights)
            if not self._compiled:
                # Once, so that the time for compiling covers one whole update.
                jax.block_until_ready(result)
                self._compiled = True
            self._updates += self._updates_per_call
            self._heartbeat.beat(Phase.UPDATING, self._updates)
            return state, result

        return heard

    def _waited(self) -> None:
        rounds = self._source_rounds()
        if not self._replay_answers:
            self._heartbeat.beat(Phase.WAITING_FOR_REPLAY)
        elif rounds != self._rounds_seen:
            self._heartbeat.beat(Phase.WAITING_FOR_DATA)
        self._rounds_seen = rounds
