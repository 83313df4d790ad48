"""The learner node: batches from Reverb, parameters back to it, checkpoints to disk."""

import functools
import logging
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import launchpad as lp
import numpy as np
import reverb

from launch import build, heartbeat
from launch.config import Config
from launch.heartbeat import Phase
from launch.learner_state import gives_up_when_diverged, restore, save
from launch.nodes.learner_heartbeat import LearnerHeartbeat
from launch.nodes.publishing import make_publish
from launch.nodes.tables import item_layout, prioritization_of
from launch.replay import IN_FLIGHT_BATCHES
from launch.run_dir import RunDir
from learner import acting
from learner.background_save import BackgroundSave
from learner.checkpoint import Checkpointer
from learner.divergence import FiniteGuard
from learner.loop import Batch, Edges, ReplayCounts, run_learner
from learner.prefetch import Prefetcher
from learner.transitions import Transition
from learner.update import LearnerState, Update
from reverb_server import sampler, telemetry
from reverb_server.client import SERVER_AWAY, read_counts
from reverb_server.foreign_samples import ForeignSamples
from reverb_server.params import ParamsPublisher
from reverb_server.priorities import PriorityUpdater


class Parts(NamedTuple):
    """What a rehearsal has of its own."""

    make_learner: Callable[[Config], tuple[LearnerState, Update]] = build.make_learner
    save: Callable[..., int] = save


REAL = Parts()


def run_learner_node(
    config: Config, run_dir: pathlib.Path, client: reverb.Client, parts: Parts = REAL
) -> None:
    """Trains from the newest checkpoint, if there is one, until done or told to stop."""
    guard = FiniteGuard()
    with gives_up_when_diverged(guard, learning_rate=build.learning_rate(config)):
        _train(config, RunDir(run_dir), client, guard, parts)


def _train(
    config: Config, run_dir: RunDir, client: reverb.Client, guard: FiniteGuard, parts: Parts
) -> None:
    stop = lp.stop_event()
    heart = heartbeat.of_this_process("learner")
    heart.beat(Phase.STARTING)
    logging.info("computing on %s", build.prepare_learner_process(config))
    state, update = parts.make_learner(config)
    checkpointer = Checkpointer(run_dir.checkpoints, keep=config.learner.keep_checkpoints)
    state, steps, _ = restore(checkpointer, state)
    source = make_sampler(config, client.server_address)
    foreign = ForeignSamples(slack=source.stream_items)
    # A thread, and so a loop of its own that may hang.
    publishing = heartbeat.of_this_process("publisher")
    publisher = ParamsPublisher(
        client, on_round=lambda version: publishing.beat(Phase.PUBLISHING, version)
    )
    report = telemetry.TelemetryWriter(reverb.Client(client.server_address), "learner")
    priorities = PriorityUpdater(client) if config.replay.prioritized else None
    saves = BackgroundSave(functools.partial(parts.save, checkpointer, guard))
    flatten = jax.jit(acting.flatten_acting)

    def counts() -> ReplayCounts | None:
        found = _counts(client)
        if found is not None:
            foreign.observe(found.samples, source.max_samples)
        return found

    def report_row(row: dict[str, Any]) -> None:
        frames = config.frames_of(row.pop("steps"))
        row |= {
            "params_version": row["updates"],
            "batches_ready": prefetcher.ready,
            "rejected_items": source.rejected_items,
            "foreign_samples": foreign.count,
        }
        report({"frames": frames, **row})

    with Prefetcher(lambda: to_device(source())) as prefetcher:
        heard = LearnerHeartbeat(
            heart,
            updates=int(state.updates),
            updates_per_call=config.learner.updates_per_dispatch,
            source_rounds=lambda: prefetcher.rounds,
        )
        edges = Edges(
            next_batch=prefetcher.get,
            read_counts=counts,
            publish=make_publish(flatten, publisher, guard),
            report=report_row,
            start_save=saves.start,
            save_and_wait=saves.finish,
            update_priorities=priorities,
            should_stop=stop.is_set,
        )
        run_learner(
            state=state,
            update=heard.of_update(update),
            steps=steps,
            edges=heard.of_edges(edges),
            periods=build.learner_periods(config),
        )
    publisher.close()
    publishing.beat(Phase.FINISHED)
    if priorities is not None:
        priorities.close()
    report.close()
    if not stop.is_set():
        # The process may live on: a colocated replay serves the evaluator.
        heart.beat(Phase.FINISHED)


def make_sampler(config: Config, server_address: str) -> sampler.BatchSampler:
    """What draws the learner's batches."""
    environment = config.environment
    return sampler.BatchSampler(
        server_address,
        item_layout(config),
        batch_size=config.sampled_items,
        in_flight_batches=IN_FLIGHT_BATCHES,
        prioritization=prioritization_of(config),
        num_actions=build.num_actions(environment.game, environment.full_action_set),
    )


def to_device(sampled: sampler.SampledBatch | None) -> Batch | None:
    """A sampled batch, on its way to the device."""
    if sampled is None:
        return None
    transition, weights = jax.device_put((transition_of(sampled), sampled.weights))
    return Batch(transition, weights, sampled.keys)


def transition_of(sampled: sampler.SampledBatch) -> Transition:
    """What the learner calls the parts of sampled items."""
    steps = sampled.steps
    return Transition(
        o_tm1=sampled.o_tm1,
        o_t=sampled.o_t,
        a_tm1=steps.action[:, 0].astype(np.int32),
        r_t=np.ascontiguousarray(steps.reward),
        discount_t=np.ascontiguousarray(steps.discount),
        epsilon=np.ascontiguousarray(steps.epsilon[:, 0]),
        greedy_tm1=steps.greedy[:, 0].astype(np.int32),
    )


def _counts(client: reverb.Client) -> ReplayCounts | None:
    try:
        counts = read_counts(client)
    except SERVER_AWAY as error:
        # The server is away for a moment; the learner goes on with the last count.
        logging.warning("replay does not answer: %s", error)
        return None
    return ReplayCounts(inserts=counts.inserts, samples=counts.samples)
