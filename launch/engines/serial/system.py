"""`vantage train --serial`: the whole system in one process, deterministic for a seed.

The learner's loop is the driver: whenever it asks for a batch, the actors play until the
sample-to-insert ratio allows one. Actors, windows, update, evaluation, checkpoints and metrics are
those of a distributed run; only the transport is gone, and with it every thread.

A checkpoint holds everything that decides what comes next (learner, replay, games, generators and
the parameters the actors hold), so a run that is stopped or killed and resumed ends with the very
parameters of one that was not.
"""

import functools
import logging
import signal
import time
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from actors.loop import ActingParams, Actor, ActorEdges
from actors.resume import RecordedBatch
from launch import build
from launch.best_params import BestKeeper
from launch.config import Config
from launch.engines.serial.evaluation import SerialEvaluation
from launch.engines.serial.replay import SerialReplay, is_current
from launch.engines.serial.stored_parts import (
    Parts,
    check_same_games,
    join_parts,
    split_parts,
)
from launch.errors import ExitCode, GiveUpError, InputError
from launch.learner_state import gives_up_when_diverged, restore, save
from launch.monitor.plain_view import PlainView
from launch.monitor.snapshot import RunState
from launch.run_dir import RunDir
from launch.seeds import environment_seed, seed_for
from launch.terminal import complain
from learner import acting
from learner.background_save import finished_save
from learner.checkpoint import Checkpointer
from learner.divergence import FiniteGuard
from learner.loop import Batch, Edges, Progress, ReplayCounts, run_learner
from learner.step_counter import StepCounter
from learner.update import LearnerState
from report.metrics_file import MetricsFile


def train_serially(config: Config, run_dir: RunDir) -> ExitCode:
    """Trains to the end, or until Ctrl-C."""
    if config.replay.prioritized:
        raise InputError("--serial samples uniformly; drop --prioritized")
    build.prepare_learner_process(config)
    system = SerialSystem(config, run_dir)
    signal.signal(signal.SIGINT, lambda *_: system.request_stop())
    signal.signal(signal.SIGTERM, lambda *_: system.request_stop())
    try:
        system.run()
    except GiveUpError as error:
        complain(str(error))
        return ExitCode.FAILED
    return ExitCode.INTERRUPTED if system.stop_requested else ExitCode.DONE


class SerialSystem:
    """All roles of a run, called in turn."""

    def __init__(self, config: Config, run_dir: RunDir):
        self._config = config
        self._checkpointer = Checkpointer(run_dir.checkpoints, keep=config.learner.keep_checkpoints)
        self._best = BestKeeper(run_dir.best)
        fresh, self._update = build.make_learner(config)
        self._state, self._steps, serial_state = restore(
            self._checkpointer, fresh, serial_state=True
        )
        self._replay = SerialReplay(
            cut=build.make_cut(config),
            take_stacks=build.own_backend().take_stacks,
            capacity_steps=config.replay.replay_capacity_steps,
            rng=np.random.default_rng(seed_for(config, "sampler")),
        )
        self._log = _Log(config, run_dir)
        self._guard = FiniteGuard()
        self._acting: ActingParams | None = None
        network = build.network_of(config)
        self._greedy = acting.make_greedy(network)
        self._unflatten = acting.make_unflatten(network)
        self._environments = [self._make_games(index) for index in range(config.actor.actors)]
        self._actors = [self._make_actor(index) for index in range(config.actor.actors)]
        self._evaluation = SerialEvaluation(config, self._greedy)
        self.stop_requested = False
        parts = split_parts(serial_state)
        if parts and is_current(parts["replay"]):
            self._restore(parts)
        else:
            # New, last trained by processes, or stored by an earlier version, whose items were
            # others: games start anew, replay is empty, and warms up.
            if parts:
                logging.warning("replay was stored by an earlier version: it starts empty")
            self._steps.last_inserts = 0

    def request_stop(self) -> None:
        """Ends the run after the update under way."""
        self.stop_requested = True

    def run(self) -> LearnerState:
        """Trains to the end; returns the final state."""
        rate = build.learning_rate(self._config)
        with gives_up_when_diverged(self._guard, learning_rate=rate):
            return self._run()

    def _run(self) -> LearnerState:
        if self._acting is None:
            updates = int(self._state.updates)
            self._publish(self._state, Progress(updates, self._steps.total, finished=False))
        elif self._acting.frames >= self._config.frames_of(self._config.total_steps):
            return self._state  # the run was over when it was stored
        edges = Edges(
            next_batch=self._next_batch,
            read_counts=lambda: ReplayCounts(self._replay.inserts, self._replay.samples),
            publish=self._publish,
            report=self._report,
            start_save=functools.partial(finished_save, self._save),
            save_and_wait=self._save,
            update_priorities=None,
            should_stop=lambda: self.stop_requested,
        )
        return run_learner(
            state=self._state,
            update=self._update,
            steps=self._steps,
            edges=edges,
            periods=build.learner_periods(self._config, serial=True),
        )

    def _save(self, state: LearnerState, steps: StepCounter) -> int:
        assert self._acting is not None  # published before the first batch
        parts = {
            "replay": self._replay.state(),
            "evaluation": self._evaluation.state(),
            "acting": {
                "values": np.asarray(ravel_pytree(self._acting.params)[0]),
                "version": np.array(self._acting.version),
                "frames": np.array(self._acting.frames),
            },
        }
        for index, actor in enumerate(self._actors):
            parts[f"actor-{index}"] = actor.state()
            parts[f"games-{index}"] = self._environments[index].state()
        return save(self._checkpointer, self._guard, state, steps, join_parts(parts))

    def _restore(self, parts: Parts) -> None:
        check_same_games(parts, self._config)
        self._replay.restore(parts["replay"])
        self._evaluation.restore(parts["evaluation"])
        acting = parts["acting"]
        self._acting = ActingParams(
            self._unflatten(acting["values"]),
            int(acting["version"]),
            int(acting["frames"]),
            age_seconds=0.0,
        )
        for index, actor in enumerate(self._actors):
            stacks = self._environments[index].restore(parts[f"games-{index}"])
            assert stacks is not None  # an actor starts its games when it is made
            actor.restore(parts[f"actor-{index}"], stacks)

    def _make_games(self, index: int) -> RecordedBatch:
        seeds = seed_for(self._config, "actor", index)
        return build.make_recorded_environment(
            self._config,
            num_envs=self._config.actor.envs_per_actor,
            seed=environment_seed(seeds),
            training=True,
        )

    def _make_actor(self, index: int) -> Actor:
        config = self._config
        edges = ActorEdges(
            get_params=self._get_params,
            greedy_actions=self._greedy,
            write=lambda game, increment: self._replay.write((index, game), increment),
            waited_seconds=lambda: 0.0,
            report=lambda row: self._log({"role": f"actor/{index}", **row}),
            should_stop=lambda: self.stop_requested,
        )
        seeds = seed_for(config, "actor", index)
        return build.make_actor(
            config, index, self._environments[index], edges, seeds, pipeline_depth=0
        )

    def _get_params(self) -> ActingParams:
        assert self._acting is not None  # the learner publishes before it asks for a batch
        return self._acting

    def _next_batch(self, timeout_seconds: float) -> Batch | None:
        del timeout_seconds  # nobody else could bring one
        size = self._config.sampled_transitions
        while not self._batch_is_due():
            if self.stop_requested:
                return None
            for actor in self._actors:
                actor.step()
        transition = jax.device_put(self._replay.sample(size))
        return Batch(transition, np.ones(size, np.float32), np.zeros(size, np.uint64))

    def _batch_is_due(self) -> bool:
        learned_from = self._replay.inserts - self._config.replay.warmup_steps
        allowed = learned_from * self._config.replay.samples_per_insert
        return self._replay.samples + self._config.sampled_transitions <= allowed

    def _publish(self, state: LearnerState, progress: Progress) -> None:
        frames = self._config.frames_of(progress.steps)
        # A copy: the next update takes over the buffers.
        params = jax.tree.map(np.array, acting.acting_params(state.params))
        self._guard.check(progress.updates, params)
        self._acting = ActingParams(params, progress.updates, frames, age_seconds=0.0)
        row = self._evaluation.if_due(params, frames, finished=progress.finished)
        if row is not None:
            self._log({"role": "evaluator", **row})
            self._best.offer(params, frames=frames, score=row["eval_return"])

    def _report(self, row: dict[str, Any]) -> None:
        frames = self._config.frames_of(row.pop("steps"))
        self._log({"role": "learner", "frames": frames, "params_version": row["updates"], **row})
        self._log({"role": "replay", "frames": frames, "size": self._replay.size})


class _Log:
    """metrics.jsonl and lines on the terminal."""

    def __init__(self, config: Config, run_dir: RunDir):
        self._file = MetricsFile(run_dir.metrics_file)
        self._view = PlainView()
        self._state = RunState(
            total_frames=config.frames,
            target_samples_per_insert=config.replay.samples_per_insert,
        )

    def __call__(self, row: dict[str, Any]) -> None:
        stamped = {"time": time.time(), **row}
        self._file.append([stamped])
        self._state.add([stamped])
        self._view.update(self._state.snapshot())
