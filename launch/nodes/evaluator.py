"""The evaluator node: whole episodes with the newest parameters, at regular global frames."""

from typing import Any

import launchpad as lp
import numpy as np
import reverb

from actors.evaluate import EpisodeScores, run_evaluator
from launch import build, heartbeat
from launch.config import Config
from launch.heartbeat import Phase
from launch.nodes.acting_heartbeat import heard
from launch.nodes.limits import params_limits
from launch.scores import evaluation_row
from launch.seeds import environment_seed, node_seed
from learner import acting
from reverb_server import telemetry
from reverb_server.params import ParamsPuller

_MAX_ENVS = 8


def run_evaluator_node(config: Config, client: reverb.Client) -> None:
    """Evaluates until training has finished or the program stops."""
    stop = lp.stop_event()
    heart = heartbeat.of_this_process("evaluator")
    heart.beat(Phase.STARTING)
    seeds = node_seed(config, "evaluator")
    rng = np.random.default_rng(seeds)
    network = build.network_of(config)
    unflatten = acting.make_unflatten(network)
    greedy = heard(heart, Phase.EVALUATING, acting.make_greedy(network))
    environment = build.make_environment(
        config,
        num_envs=min(build.num_evaluation_games(config), _MAX_ENVS),
        seed=environment_seed(seeds),
        training=False,
    )
    puller = ParamsPuller(
        client,
        limits=params_limits(config, network),
        stale_seconds=config.actor.stale_params_seconds,
    )
    report = telemetry.TelemetryWriter(reverb.Client(client.server_address), "evaluator")

    def next_params(due_frames: int) -> tuple[Any, int, bool] | None:
        heart.beat(Phase.WAITING_FOR_PARAMETERS)
        snapshot = puller.wait_first(1.0)
        if snapshot is None:
            return None
        published = snapshot.params
        frames = config.frames_of(published.steps)
        # A replay server restored from a shorter run still holds that run's final parameters.
        finished = published.finished and published.steps >= config.total_steps
        if frames < due_frames and not finished:
            stop.wait(0.5)
            return None
        return unflatten(published.values), frames, finished

    def evaluate(params: Any) -> EpisodeScores | None:
        return build.play_evaluation(
            config, environment, lambda stacks: greedy(params, stacks), rng, stop.is_set
        )

    run_evaluator(
        evaluate=evaluate,
        next_params=next_params,
        report=lambda frames, scores: report(evaluation_row(config, frames, scores)),
        period_frames=config.evaluator.eval_period_frames,
        should_stop=stop.is_set,
    )
    puller.close()
    report.close()
    environment.close()
