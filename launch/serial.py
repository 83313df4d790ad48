"""`vantage train --serial`: the whole system in one process, deterministic for a seed.

The learner's loop is the driver: whenever it asks for a batch, the actors play until the
sample-to-insert ratio allows one. Actors, windows, update, evaluation, checkpoints and metrics are
those of a distributed run; only the transport is gone, and with it every thread.
"""

import functools
import signal
import time
from typing import Any

import jax
import numpy as np

from actors.evaluate import play_episodes
from actors.loop import ActingParams, Actor, ActorEdges
from launch import components
from launch.config import Config
from launch.errors import ExitCode, InputError
from launch.learner_state import periods_of, restore, save
from launch.monitor.terminal import PlainView
from launch.monitor.view import RunView
from launch.run_dir import RunDir
from launch.scores import evaluation_row
from launch.serial_replay import SerialReplay
from learner.checkpoint import Checkpointer
from learner.loop import Batch, Edges, ReplayCounts, run_learner
from learner.networks import acting_params
from learner.update import LearnerState
from report.metrics_file import MetricsFile


def train_serially(config: Config, run_dir: RunDir) -> ExitCode:
    """Trains to the end, or until Ctrl-C."""
    if config.replay.prioritized:
        raise InputError("--serial samples uniformly; drop --prioritized")
    system = SerialSystem(config, run_dir)
    signal.signal(signal.SIGINT, lambda *_: system.request_stop())
    signal.signal(signal.SIGTERM, lambda *_: system.request_stop())
    system.run()
    return ExitCode.INTERRUPTED if system.stop_requested else ExitCode.DONE


class SerialSystem:
    """All roles of a run, called in turn."""

    def __init__(self, config: Config, run_dir: RunDir):
        self._config = config
        self._checkpointer = Checkpointer(run_dir.checkpoints, keep=config.learner.keep_checkpoints)
        fresh, self._update = components.make_learner(config)
        self._state, self._steps = restore(self._checkpointer, fresh)
        # Replay is not stored: a resumed run counts its inserts from zero and warms up again.
        self._steps.last_inserts = 0
        self._replay = SerialReplay(
            n_step=config.learner.n_step,
            capacity_steps=config.replay.replay_capacity_steps,
            rng=np.random.default_rng(components.seed_for(config, "sampler")),
        )
        self._log = _Log(config, run_dir)
        self._acting: ActingParams | None = None
        network = components.network_of(config)
        self._greedy = components.make_greedy(network)
        self._actors = [self._make_actor(index) for index in range(config.actor.actors)]
        self._evaluation = _Evaluation(config, self._greedy)
        self.stop_requested = False

    def request_stop(self) -> None:
        """Ends the run after the update under way."""
        self.stop_requested = True

    def run(self) -> LearnerState:
        """Trains to the end; returns the final state."""
        edges = Edges(
            next_batch=self._next_batch,
            read_counts=lambda: ReplayCounts(
                self._replay.inserts, self._replay.samples, self._replay.size
            ),
            publish=self._publish,
            report=self._report,
            save=functools.partial(save, self._checkpointer),
            update_priorities=None,
            should_stop=lambda: self.stop_requested,
        )
        return run_learner(
            state=self._state,
            update=self._update,
            steps=self._steps,
            edges=edges,
            periods=periods_of(self._config),
        )

    def _make_actor(self, index: int) -> Actor:
        config = self._config
        seeds = components.seed_for(config, "actor", index)
        environment = components.make_environment(
            config,
            num_envs=config.actor.envs_per_actor,
            seed=components.environment_seed(seeds),
            training=True,
        )
        edges = ActorEdges(
            get_params=self._get_params,
            greedy_actions=self._greedy,
            write=lambda game, increment, ends: self._replay.write((index, game), increment, ends),
            waited_seconds=lambda: 0.0,
            report=lambda row: self._log({"role": f"actor/{index}", **row}),
            should_stop=lambda: self.stop_requested,
        )
        return Actor(
            environment,
            edges,
            epsilon_fn=components.make_epsilon(config, index),
            n_step=config.learner.n_step,
            gamma=config.learner.gamma,
            rng=np.random.default_rng(seeds),
        )

    def _get_params(self) -> ActingParams:
        assert self._acting is not None  # the learner publishes before it asks for a batch
        return self._acting

    def _next_batch(self, timeout_seconds: float) -> Batch | None:
        del timeout_seconds  # nobody else could bring one
        batch_size = self._config.learner.batch_size
        while not self._batch_is_due():
            if self.stop_requested:
                return None
            for actor in self._actors:
                actor.step()
        transition = jax.device_put(self._replay.sample(batch_size))
        return Batch(transition, np.ones(batch_size, np.float32), np.zeros(batch_size, np.uint64))

    def _batch_is_due(self) -> bool:
        learned_from = self._replay.inserts - self._config.replay.warmup_steps
        allowed = learned_from * self._config.replay.samples_per_insert
        return self._replay.samples + self._config.learner.batch_size <= allowed

    def _publish(self, state: LearnerState, steps: int, finished: bool) -> None:
        frames = steps * self._config.environment.action_repeat
        # A copy: the next update takes over the buffers.
        params = jax.tree.map(np.array, acting_params(state.params))
        self._acting = ActingParams(params, int(state.updates), frames, age_seconds=0.0)
        row = self._evaluation.if_due(params, frames, finished=finished)
        if row is not None:
            self._log({"role": "evaluator", **row})

    def _report(self, row: dict[str, Any]) -> None:
        frames = row.pop("steps") * self._config.environment.action_repeat
        self._log({"role": "learner", "frames": frames, "params_version": row["updates"], **row})
        self._log({"role": "replay", "frames": frames, "size": self._replay.size})


class _Evaluation:
    """The evaluator's schedule, without a process of its own."""

    def __init__(self, config: Config, greedy: Any):
        seeds = components.seed_for(config, "evaluator")
        self._config = config
        self._greedy = greedy
        self._rng = np.random.default_rng(seeds)
        self._environment = components.make_environment(
            config,
            num_envs=config.evaluator.eval_episodes,
            seed=components.environment_seed(seeds),
            training=False,
        )
        self._due_frames = config.evaluator.eval_period_frames

    def if_due(self, params: Any, frames: int, *, finished: bool) -> dict[str, Any] | None:
        """A row with the scores, or None if it is not yet time."""
        if frames < self._due_frames and not finished:
            return None
        period = self._config.evaluator.eval_period_frames
        self._due_frames = (frames // period + 1) * period
        scores = play_episodes(
            self._environment,
            lambda stacks: self._greedy(params, stacks),
            episodes=self._config.evaluator.eval_episodes,
            epsilon=self._config.evaluator.eval_epsilon,
            rng=self._rng,
        )
        assert scores is not None  # nothing stops it
        return evaluation_row(self._config, frames, scores)


class _Log:
    """metrics.jsonl and lines on the terminal."""

    def __init__(self, config: Config, run_dir: RunDir):
        self._file = MetricsFile(run_dir.metrics_file)
        self._view = PlainView()
        self._state = RunView(
            total_frames=config.frames,
            target_samples_per_insert=config.replay.samples_per_insert,
        )

    def __call__(self, row: dict[str, Any]) -> None:
        stamped = {"time": time.time(), **row}
        self._file.append([stamped])
        self._state.add([stamped])
        self._view.update(self._state.snapshot())
