"""The evaluator node: whole episodes with the newest parameters, at regular global frames."""

import logging
import pathlib
from typing import Any

import launchpad as lp
import numpy as np
import reverb

from actors.evaluate import EpisodeScores, run_evaluator
from launch import build
from launch.config import Config
from launch.heartbeat import Phase
from launch.layout import NodeName
from launch.nodes.player import make_player
from launch.run_dir import RunDir
from launch.scores import evaluation_row
from launch.stored.best_params import BestKeeper
from launch.stored.candidate import load_candidate
from launch.stored.learner_state import saved_steps
from learner.acting import acting_params
from learner.checkpoint import Checkpointer
from report.counted import counted

_MAX_ENVS = 8


def run_evaluator_node(config: Config, run_dir: pathlib.Path, client: reverb.Client) -> None:
    """Evaluates until training has finished or the program stops."""
    stop = lp.stop_event()
    checkpointer = Checkpointer(RunDir(run_dir).checkpoints)
    best = BestKeeper(RunDir(run_dir).best)
    whole = build.empty_params(config)
    with make_player(
        config,
        client,
        NodeName("evaluator", 0),
        reports_as="evaluator",
        num_envs=min(build.num_evaluation_games(config), _MAX_ENVS),
        training=False,
        phase=Phase.EVALUATING,
    ) as player:
        rng = np.random.default_rng(player.seeds)

        def next_params(due_frames: int) -> tuple[Any, int, bool] | None:
            player.heart.beat(Phase.WAITING_FOR_PARAMETERS)
            snapshot = player.puller.wait_first(1.0)
            if snapshot is None:
                return None
            published = snapshot.params
            frames = config.frames_of(published.steps)
            # A replay server restored from a shorter run still holds that run's final parameters.
            last = published.finished and published.steps >= config.total_steps
            # Anyone can publish some; only the learner, when it is done, writes such a checkpoint.
            unconfirmed = last and saved_steps(checkpointer) < config.total_steps
            if unconfirmed or (frames < due_frames and not last):
                stop.wait(0.5)
                return None
            candidate = load_candidate(RunDir(run_dir).candidate, whole)
            if candidate is not None and candidate.frames >= (frames if last else due_frames):
                return candidate.params, candidate.frames, last
            return player.unflatten(published.values), frames, last

        def evaluate(params: Any) -> EpisodeScores | None:
            acting = acting_params(params)
            return build.play_evaluation(
                config,
                player.environment,
                lambda stacks: player.greedy(acting, stacks),
                rng,
                stop.is_set,
            )

        def report(params: Any, frames: int, scores: EpisodeScores) -> None:
            player.report(evaluation_row(config, frames, scores))
            score = float(scores.returns.mean())
            scored = f"{score:,.1f} in {counted(len(scores.returns), 'episode')}"
            logging.info("evaluation at %s frames: %s", f"{frames:,}", scored)
            player.heart.remark(f"last {scored}, at {frames:,} frames")
            # What was broadcast has no V and no mu: it is scored, and not kept.
            if params.keys() == whole.keys():
                best.offer(params, frames=frames, score=score)

        run_evaluator(
            evaluate=evaluate,
            next_params=next_params,
            report=report,
            period_frames=config.evaluator.eval_period_frames,
            should_stop=stop.is_set,
        )
