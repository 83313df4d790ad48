"""`vantage eval RUN`: scores a checkpoint over whole episodes, with an interval."""

import json
import pathlib
from typing import NamedTuple

import numpy as np
from rich.progress import Progress
from scipy import stats

from actors import games
from actors.evaluate import EpisodeScores, play_episodes
from launch import build, config_checks
from launch.agent.stored_params import StoredParams, load_params, playing_epsilon
from launch.bounds import COUNT
from launch.config import Config
from launch.errors import ExitCode
from launch.run_dir import RunDir
from launch.terminal import say
from learner import acting
from report.counted import counted

_MAX_ENVS = 8
_CONFIDENCE = 0.95
_RESAMPLES = 10_000


class Interval(NamedTuple):
    """A mean, and a bootstrap interval unless there is but one episode."""

    mean: float
    low: float | None
    high: float | None


def evaluate(
    run: pathlib.Path,
    checkpoint: str,
    episodes: int,
    epsilon: float | None,
    seed: int,
    as_json: bool,
) -> ExitCode:
    """Plays whole episodes and prints their scores."""
    run_dir = RunDir(run)
    run_dir.check_own()
    config = run_dir.load_config()
    config_checks.check_config(config)
    COUNT.check(episodes=episodes)
    epsilon = playing_epsilon(config, epsilon, seed=seed)
    stored = load_params(run_dir, config, checkpoint)
    scores = _play(config, stored, episodes=episodes, epsilon=epsilon, seed=seed)
    raw = mean_interval(scores.returns, seed=seed)
    game = config.environment.game
    normalized = Interval(
        games.human_normalized(game, raw.mean),
        None if raw.low is None else games.human_normalized(game, raw.low),
        None if raw.high is None else games.human_normalized(game, raw.high),
    )
    if as_json:
        print(
            json.dumps(
                {
                    "run": str(run),
                    "game": game,
                    "checkpoint": checkpoint,
                    "frames": stored.frames,
                    "updates": stored.updates,
                    "epsilon": epsilon,
                    "sticky_actions": config.environment.sticky_actions,
                    "episodes": episodes,
                    "return": raw._asdict(),
                    "human_normalized": normalized._asdict(),
                    "returns": scores.returns.tolist(),
                }
            )
        )
        return ExitCode.DONE
    say(f"{run}: {config.learner.algorithm} on {game}, {stored.frames:,} frames")
    sticky = config.environment.sticky_actions
    played = f"{counted(episodes, 'episode')} at epsilon {epsilon:g}"
    played += f", sticky actions {sticky:g}" if sticky else ""
    say(f"{played}, 95 % bootstrap interval of the mean:")
    say(f"  return            {_text(raw, 1)}")
    say(f"  human-normalized  {_text(normalized, 3)}")
    low, middle, high = np.percentile(scores.returns, [0, 50, 100])
    say(f"  episodes from {low:,.1f} to {high:,.1f}, median {middle:,.1f}")
    return ExitCode.DONE


def mean_interval(returns: np.ndarray, *, seed: int) -> Interval:
    """The mean return with its percentile bootstrap interval over episodes."""
    mean = float(returns.mean())
    if len(returns) < 2:
        return Interval(mean, None, None)
    found = stats.bootstrap(
        (returns,),
        np.mean,
        confidence_level=_CONFIDENCE,
        n_resamples=_RESAMPLES,
        method="percentile",
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high))


def _play(
    config: Config, stored: StoredParams, *, episodes: int, epsilon: float, seed: int
) -> EpisodeScores:
    greedy = acting.make_greedy(build.network_of(config))
    params = acting.acting_params(stored.params)
    environment = build.make_environment(
        config, num_envs=min(episodes, _MAX_ENVS), seed=seed, training=False
    )
    try:
        with Progress(transient=True) as progress:
            task = progress.add_task("playing", total=episodes)
            scores = play_episodes(
                environment,
                lambda stacks: greedy(params, stacks),
                episodes=episodes,
                epsilon=epsilon,
                rng=np.random.default_rng(seed),
                on_episode=lambda _: progress.advance(task),
            )
    finally:
        environment.close()
    assert scores is not None  # nothing stops it
    return scores


def _text(interval: Interval, digits: int) -> str:
    mean = f"{interval.mean:,.{digits}f}"
    if interval.low is None or interval.high is None:
        return f"{mean} (one episode: no interval)"
    return f"{mean} [{interval.low:,.{digits}f}, {interval.high:,.{digits}f}]"
