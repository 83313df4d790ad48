"""The evaluator of a serial run: its schedule and its games, without a process of its own."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actors.evaluate import next_evaluation
from actors.resume import pack_rng, unpack_rng
from launch import build
from launch.config import Config
from launch.scores import evaluation_row
from launch.seeds import environment_seed, seed_for


class SerialEvaluation:
    """Plays whole episodes when they are due."""

    def __init__(self, config: Config, greedy: Any):
        seeds = seed_for(config, "evaluator")
        self._config = config
        self._greedy = greedy
        self._rng = np.random.default_rng(seeds)
        self._environment = build.make_recorded_environment(
            config,
            num_envs=build.num_evaluation_games(config),
            seed=environment_seed(seeds),
            training=False,
        )
        self._due_frames = config.evaluator.eval_period_frames

    def if_due(self, params: Any, frames: int, *, finished: bool) -> dict[str, Any] | None:
        """A row with the scores, or None if it is not yet time."""
        if frames < self._due_frames and not finished:
            return None
        self._due_frames = next_evaluation(frames, self._config.evaluator.eval_period_frames)
        scores = build.play_evaluation(
            self._config, self._environment, lambda stacks: self._greedy(params, stacks), self._rng
        )
        assert scores is not None  # nothing stops it
        return evaluation_row(self._config, frames, scores)

    def state(self) -> dict[str, np.ndarray]:
        """When it is due next, and with which starts; it is never stored amid an evaluation."""
        return {
            "rng": pack_rng(self._rng),
            "due_frames": np.array(self._due_frames),
            "restarts": self._environment.state()["restarts"],
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from a `state`."""
        unpack_rng(self._rng, state["rng"])
        self._due_frames = int(state["due_frames"])
        restarts = state["restarts"]
        no_actions = {"lengths": np.zeros_like(restarts), "actions": np.zeros(0, np.uint8)}
        self._environment.restore({"restarts": restarts, **no_actions})
