"""The learner node: batches from Reverb, parameters back to it, checkpoints to disk."""

import functools
import logging
import math
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
from launch.nodes.learner_heartbeat import LearnerHeartbeat, of_background_save
from launch.nodes.publishing import make_publish
from launch.nodes.tables import item_layout, prioritization_of
from launch.replay import sample_streams
from launch.run_dir import RunDir
from launch.seeds import node_seed
from launch.stored.candidate import CandidateWriter
from launch.stored.learner_state import gives_up_when_diverged, restore, save
from learner import acting
from learner.background_save import BackgroundSave
from learner.checkpoint import Checkpointer
from learner.divergence import FiniteGuard
from learner.loop import Batch, Edges, run_learner
from learner.prefetch import Prefetcher
from learner.update import LearnerState, Update
from reverb_server import sampler
from reverb_server.client import SERVER_AWAY, TableCounts, read_counts
from reverb_server.foreign_samples import ForeignSamples
from reverb_server.params import ParamsPublisher
from reverb_server.priorities import PriorityUpdater
from reverb_server.tables import ItemLayout
from reverb_server.telemetry import TelemetryWriter


class Parts(NamedTuple):
    """What a rehearsal has of its own."""

    make_learner: Callable[[Config], tuple[LearnerState, Update]] = build.make_learner
    save: Callable[..., int] = save


REAL = Parts()
_LEFT_OPEN: list["BatchStream"] = []


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
    # A thread, and so a loop of its own that may hang, as the publisher's is.
    saving = heartbeat.of_this_process("saver", log_seconds=math.inf)
    write = functools.partial(parts.save, checkpointer, guard)
    saves = BackgroundSave(of_background_save(saving, write))
    sampling = _Sampling(config, client)
    if heart.is_heard and not config.replay.colocate:
        # Closing one waits for TensorFlow's thread, which waits for replay: half a minute where
        # nobody inserts any more. A process of the learner's own ends without.
        _LEFT_OPEN.extend(sampling.streams)
    outlets = _Outlets(config, run_dir, client, guard)
    with Prefetcher(*sampling.streams) as prefetcher:
        heard = LearnerHeartbeat(
            heart,
            updates=int(state.updates),
            updates_per_call=config.learner.updates_per_dispatch,
            source_rounds=lambda: prefetcher.rounds,
        )
        edges = Edges(
            next_batch=prefetcher.get,
            read_counts=sampling.read_counts,
            publish=outlets.publish,
            report=_Reports(config, heart, prefetcher, sampling, outlets.telemetry),
            start_save=saves.start,
            save_and_wait=saves.finish,
            update_priorities=outlets.priorities,
            should_stop=stop.is_set,
        )
        run_learner(
            state=state,
            update=heard.of_update(update),
            steps=steps,
            edges=heard.of_edges(edges),
            periods=build.learner_periods(config),
        )
    outlets.close()
    if not stop.is_set():
        # The process may live on: a colocated replay serves the evaluator.
        heart.beat(Phase.FINISHED)


class BatchStream:
    """One of the learner's sources of batches on the device, for a thread of its own."""

    def __init__(
        self,
        config: Config,
        layout: ItemLayout,
        server_address: str,
        seeds: np.random.SeedSequence,
    ):
        environment = config.environment
        self.sampler = sampler.BatchSampler(
            server_address,
            layout,
            batch_size=config.sampled_items,
            prioritization=prioritization_of(config),
            num_actions=build.num_actions(environment.game, environment.full_action_set),
        )
        self._cut = build.make_cut(config)
        self._rng = np.random.default_rng(seeds)
        self._take_stacks = build.own_backend().take_stacks

    def __call__(self) -> Batch | None:
        """The next batch, on its way to the device; None if none came in time."""
        sampled = self.sampler()
        return None if sampled is None else self.to_device(sampled)

    def to_device(self, sampled: sampler.SampledBatch) -> Batch:
        """The batches of all updates of one call, cut from sampled items."""
        transition = self._cut(sampled.frames, sampled.steps, self._rng, self._take_stacks)
        # Transitions of an item share its weight; they are several only where all weights are 1.
        weights = np.repeat(sampled.weights, self._cut.item_transitions)
        # The stacks are on the device, or on their way. The numbers go there with the call of the
        # update: they are few, and sending them column by column from here takes Python longer.
        return Batch(transition, weights, sampled.keys)


def make_streams(config: Config, server_address: str) -> list[BatchStream]:
    """What draws the learner's batches, each in a thread of its own."""
    layout = item_layout(config)
    seeds = node_seed(config, "sampler").spawn(sample_streams(config))
    return [BatchStream(config, layout, server_address, seed) for seed in seeds]


class _Sampling:
    """The learner's streams from replay, held against what replay says was sampled in all."""

    def __init__(self, config: Config, client: reverb.Client):
        self._client, self._layout = client, item_layout(config)
        self.streams = make_streams(config, client.server_address)
        self._samplers = [stream.sampler for stream in self.streams]
        slack = self._layout.steps_in(sum(sampler.stream_items for sampler in self._samplers))
        self._foreign = ForeignSamples(slack=slack)

    def read_counts(self) -> TableCounts | None:
        """Replay's counts of inserts and samples; None while it does not answer."""
        try:
            counts = read_counts(self._client, self._layout)
        except SERVER_AWAY as error:
            # The server is away for a moment; the learner goes on with the last count.
            logging.warning("replay does not answer: %s", error)
            return None
        own = self._layout.steps_in(sum(sampler.max_samples for sampler in self._samplers))
        self._foreign.observe(counts.samples, own)
        return counts

    def losses(self) -> dict[str, int]:
        """What was sampled and did not become a batch, as columns of a metrics row."""
        return {
            "rejected_items": sum(sampler.rejected_items for sampler in self._samplers),
            "foreign_samples": self._foreign.count,
        }


class _Outlets:
    """What the learner sends to Reverb: parameters, telemetry and, where replay asks, priorities.

    They are closed after training. An error leaves them open: a server that is gone would only hold
    up the end of the process.
    """

    def __init__(self, config: Config, run_dir: RunDir, client: reverb.Client, guard: FiniteGuard):
        # A thread, and so a loop of its own that may hang; the learner's lines say enough of it.
        heart = heartbeat.of_this_process("publisher", log_seconds=math.inf)
        self._heart = heart
        self._publisher = ParamsPublisher(
            client, on_round=lambda version: heart.beat(Phase.PUBLISHING, version)
        )
        candidates = CandidateWriter(
            run_dir.candidate, period_frames=config.evaluator.eval_period_frames
        )
        flatten = jax.jit(acting.flatten_acting)
        self.publish = make_publish(config, flatten, self._publisher, guard, candidates)
        self.telemetry = TelemetryWriter(reverb.Client(client.server_address), "learner")
        self.priorities = PriorityUpdater(client) if config.replay.prioritized else None

    def close(self) -> None:
        """Waits, within bounds, until what is under way has arrived."""
        self._publisher.close()
        self._heart.beat(Phase.FINISHED)
        if self.priorities is not None:
            self.priorities.close()
        self.telemetry.close()


class _Reports:
    """The loop's rows with what the node knows beside them: telemetry, and words for the log."""

    def __init__(
        self,
        config: Config,
        heart: heartbeat.Heartbeat,
        prefetcher: Prefetcher[Batch],
        sampling: _Sampling,
        send: TelemetryWriter,
    ):
        self._config, self._heart, self._send = config, heart, send
        self._prefetcher, self._sampling = prefetcher, sampling

    def __call__(self, row: dict[str, Any]) -> None:
        frames = self._config.frames_of(row.pop("steps"))
        row |= {
            "params_version": row["updates"],
            "batches_ready": self._prefetcher.ready,
            **self._sampling.losses(),
        }
        self._heart.remark(
            f"{frames:,} frames, {row['updates_per_second']:.1f} updates/s, "
            f"waits for data {row['data_wait_fraction']:.0%}"
        )
        self._send({"frames": frames, **row})
