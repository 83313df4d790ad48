"""The evaluator node: whole episodes with the newest parameters, at regular global frames."""

import logging
import pathlib
import threading
from typing import Any

import launchpad as lp
import numpy as np
import reverb

from actors.evaluate import EpisodeScores, games_at_once, run_evaluator
from launch import build
from launch.config import Config
from launch.heartbeat import Phase
from launch.layout import NodeName
from launch.nodes.player import Player, make_player
from launch.run_dir import RunDir
from launch.scores import evaluation_row
from launch.stored.best_params import BestKeeper
from launch.stored.candidate import load_candidate
from launch.stored.learner_state import saved_steps
from learner.acting import acting_params
from learner.checkpoint import Checkpointer
from report.counted import counted
from reverb_server.params import PublishedParams


def run_evaluator_node(config: Config, run_dir: pathlib.Path, client: reverb.Client) -> None:
    """Evaluates until training has finished or the program stops."""
    stop = lp.stop_event()
    with make_player(
        config,
        client,
        NodeName("evaluator", 0),
        reports_as="evaluator",
        num_envs=games_at_once(build.num_evaluation_games(config)),
        training=False,
        phase=Phase.EVALUATING,
    ) as player:
        evaluator = _Evaluator(config, RunDir(run_dir), player, stop)
        run_evaluator(
            evaluate=evaluator.play,
            next_params=evaluator.next_params,
            report=evaluator.report,
            period_frames=config.evaluator.eval_period_frames,
            should_stop=stop.is_set,
        )


class _Evaluator:
    """What the loop of evaluations asks for: parameters that are due, games with them, a report."""

    def __init__(self, config: Config, run_dir: RunDir, player: Player, stop: threading.Event):
        self._config, self._player, self._stop = config, player, stop
        self._checkpointer = Checkpointer(run_dir.checkpoints)
        self._candidate_folder = run_dir.candidate
        self._best = BestKeeper(run_dir.best)
        self._all_heads = build.empty_params(config)
        self._rng = np.random.default_rng(player.seeds)

    def next_params(self, due_frames: int) -> tuple[Any, int, bool] | None:
        """Parameters with their frames, and whether they are the run's last; None if none are due.

        The learner's candidate, which has all heads, comes before what was broadcast.
        """
        self._player.heart.beat(Phase.WAITING_FOR_PARAMETERS)
        snapshot = self._player.puller.wait_first(1.0)
        if snapshot is None:
            return None
        published = snapshot.params
        frames = self._config.frames_of(published.steps)
        last = self._claims_the_end(published)
        if (frames < due_frames and not last) or (last and not self._end_is_saved()):
            self._stop.wait(0.5)
            return None
        candidate = load_candidate(self._candidate_folder, self._all_heads)
        if candidate is not None and candidate.frames >= (frames if last else due_frames):
            return candidate.params, candidate.frames, last
        return self._player.unflatten(published.values), frames, last

    def play(self, params: Any) -> EpisodeScores | None:
        """The scores of an evaluation's games; None if it was told to stop."""
        acting = acting_params(params)
        return build.play_evaluation(
            self._config,
            self._player.environment,
            lambda stacks: self._player.greedy(acting, stacks),
            self._rng,
            self._stop.is_set,
        )

    def report(self, params: Any, frames: int, scores: EpisodeScores) -> None:
        """Sends the scores, says them in the log, and keeps the parameters if they are the best."""
        self._player.report(evaluation_row(self._config, frames, scores))
        score = float(scores.returns.mean())
        scored = f"{score:,.1f} in {counted(len(scores.returns), 'episode')}"
        logging.info("evaluation at %s frames: %s", f"{frames:,}", scored)
        self._player.heart.remark(f"last {scored}, at {frames:,} frames")
        # What was broadcast has no V and no mu: it is scored, and not kept.
        if params.keys() == self._all_heads.keys():
            self._best.offer(params, frames=frames, score=score)

    def _claims_the_end(self, published: PublishedParams) -> bool:
        # A replay server restored from a shorter run still holds that run's final parameters.
        return published.finished and published.steps >= self._config.total_steps

    def _end_is_saved(self) -> bool:
        # Anyone can publish final parameters; only the learner, when it is done, writes such a
        # checkpoint.
        return saved_steps(self._checkpointer) >= self._config.total_steps
