"""`vantage eval RUN`: scores a checkpoint over whole episodes, with an interval."""

import json
import pathlib
from typing import NamedTuple

import numpy as np
from rich.progress import Progress
from scipy import stats

from actors import games
from launch.agent.agent import check_playing, load_agent
from launch.bounds import COUNT
from launch.errors import ExitCode
from launch.terminal import say
from report.counted import counted

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
    COUNT.check(episodes=episodes)
    check_playing(epsilon=epsilon, seed=seed)
    agent = load_agent(run, checkpoint)
    config, epsilon = agent.config, agent.playing_epsilon(epsilon)
    with Progress(transient=True) as progress:
        task = progress.add_task("playing", total=episodes)
        scores = agent.play(
            episodes, epsilon=epsilon, seed=seed, on_episode=lambda _: progress.advance(task)
        )
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
                    "frames": agent.frames,
                    "updates": agent.updates,
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
    say(f"{run}: {config.learner.algorithm} on {game}, {agent.frames:,} frames")
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


def _text(interval: Interval, digits: int) -> str:
    mean = f"{interval.mean:,.{digits}f}"
    if interval.low is None or interval.high is None:
        return f"{mean} (one episode: no interval)"
    return f"{mean} [{interval.low:,.{digits}f}, {interval.high:,.{digits}f}]"
