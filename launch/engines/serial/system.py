"""The whole system in one process, deterministic for a seed.

The learner's loop is the driver: whenever it asks for a batch, the actors play until the
sample-to-insert ratio allows one. Actors, windows, update, evaluation, checkpoints and metrics are
those of a distributed run; only the transport is gone, and with it every thread.

A checkpoint holds everything that decides what comes next (learner, replay, games, generators and
the parameters the actors hold), so a run that is stopped or killed and resumed ends with the very
parameters of one that was not.
"""

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from actors.loop import ActingParams, Actor, ActorEdges
from actors.n_step import Increment
from actors.resume import RecordedBatch
from launch import build
from launch.config import Config
from launch.engines.serial.evaluation import SerialEvaluation
from launch.engines.serial.replay import SerialReplay, is_current
from launch.engines.serial.stored_parts import (
    Parts,
    check_same_games,
    join_parts,
    split_parts,
)
from launch.monitor.run_phase import SCORING, TRAINING, filling
from launch.nodes.acting_heartbeat import Greedy
from launch.run_dir import RunDir
from launch.seeds import environment_seed, seed_for
from launch.stored.best_params import BestKeeper
from launch.stored.learner_state import gives_up_when_diverged, restore, save
from learner import acting
from learner.background_save import finished_save
from learner.checkpoint import Checkpointer
from learner.divergence import FiniteGuard
from learner.loop import Batch, Edges, Progress, run_learner
from learner.step_counter import StepCounter
from learner.transitions import Column, Transition
from learner.update import LearnerState, UpdateResult
from report.metrics_file import Row


class SerialSystem:
    """All roles of a run, called in turn."""

    def __init__(
        self,
        config: Config,
        run_dir: RunDir,
        *,
        record: Callable[[Row], None],
        on_tick: Callable[[str, str], bool],
    ):
        """`record` takes rows of metrics. `on_tick` is told often which phase the run is in, and
        how far; it returns whether to stop."""
        self._config = config
        self._record, self._on_tick = record, on_tick
        self._phase = "starting", ""
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
        self._guard = FiniteGuard()
        self._acting: ActingParams | None = None
        network = build.network_of(config)
        self._greedy = self._heard(acting.make_greedy(network))
        self._unflatten = acting.make_unflatten(network)
        self._environments = [self._make_games(index) for index in range(config.actor.actors)]
        self._actors = [self._make_actor(index) for index in range(config.actor.actors)]
        self._evaluation = SerialEvaluation(config, self._greedy)
        self._compiled = self.stop_requested = False
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

    @property
    def finished(self) -> bool:
        """Whether all steps of the run have been played."""
        newer = self._replay.inserts - self._steps.last_inserts
        return self._steps.total + newer >= self._config.total_steps

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
            read_counts=self._replay.counts,
            publish=self._publish,
            report=self._report,
            start_save=functools.partial(finished_save, self._save),
            save_and_wait=self._save,
            update_priorities=None,
            should_stop=lambda: self.stop_requested,
        )
        return run_learner(
            state=self._state,
            update=self._heard_update,
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
            write=functools.partial(self._write, index),
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
            if self.stop_requested or self.finished:
                return None
            warmup_steps = self._config.replay.warmup_steps
            if self._replay.inserts < warmup_steps:
                self._phase = filling(self._replay.inserts, warmup_steps)
            elif self._compiled:
                self._phase = TRAINING, ""
            for actor in self._actors:
                actor.step()
        transition = jax.device_put(self._replay.sample(size))
        return Batch(transition, np.ones(size, np.float32), np.zeros(size, np.uint64))

    def _write(self, actor: int, game: int, increment: Increment) -> None:
        # Beyond the end of the run steps are played, because all games move at once, but not kept.
        items = [] if self.finished else increment.items
        self._replay.write((actor, game), increment._replace(items=items))

    def _tick(self) -> None:
        if self._on_tick(*self._phase):
            self.request_stop()

    def _heard(self, greedy: Greedy) -> Greedy:
        """The same greedy actions, asked for once in every step of any game."""

        def greedy_heard(params: Any, stacks: np.ndarray) -> np.ndarray:
            self._tick()
            return greedy(params, stacks)

        return greedy_heard

    def _heard_update(
        self, state: LearnerState, transition: Transition, weights: Column
    ) -> tuple[LearnerState, UpdateResult]:
        if not self._compiled:
            self._phase = "compiling", ""
            self._tick()
        state, result = self._update(state, transition, weights)
        if not self._compiled:
            jax.block_until_ready(result)
            self._compiled = True
        self._phase = TRAINING, ""
        return state, result

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
        self._phase = SCORING if progress.finished else "evaluating", ""
        row = self._evaluation.if_due(params, frames, finished=progress.finished)
        if row is not None:
            self._log({"role": "evaluator", **row})
            whole = jax.device_get(state.params)
            self._best.offer(whole, frames=frames, score=row["eval_return"])

    def _report(self, row: dict[str, Any]) -> None:
        frames = self._config.frames_of(row.pop("steps"))
        self._log({"role": "learner", "frames": frames, "params_version": row["updates"], **row})
        self._log({"role": "replay", "frames": frames, "size": self._replay.size})

    def _log(self, row: dict[str, Any]) -> None:
        self._record({"time": time.time(), **row})
