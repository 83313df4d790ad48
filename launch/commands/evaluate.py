"""`vantage eval RUN`: scores a checkpoint over whole episodes, with an interval."""

import json
import pathlib
from typing import Any, NamedTuple

import numpy as np
from rich.progress import Progress
from scipy import stats

from actors import games
from launch.agent.agent import Agent, check_playing, load_agent
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


class _Scored(NamedTuple):
    """An agent's games, and what they come to."""

    agent: Agent
    epsilon: float
    returns: np.ndarray  # of each episode
    raw: Interval
    normalized: Interval


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
    normalized = _normalized(config.environment.game, raw)
    scored = _Scored(agent, epsilon, scores.returns, raw, normalized)
    if as_json:
        print(json.dumps(_row(run, checkpoint, scored)))
    else:
        _say_scores(run, scored)
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


def _normalized(game: str, raw: Interval) -> Interval:
    """The interval between a random player's score and a human's."""
    return Interval(
        games.human_normalized(game, raw.mean),
        None if raw.low is None else games.human_normalized(game, raw.low),
        None if raw.high is None else games.human_normalized(game, raw.high),
    )


def _row(run: pathlib.Path, checkpoint: str, scored: _Scored) -> dict[str, Any]:
    environment = scored.agent.config.environment
    return {
        "run": str(run),
        "game": environment.game,
        "checkpoint": checkpoint,
        "frames": scored.agent.frames,
        "updates": scored.agent.updates,
        "epsilon": scored.epsilon,
        "sticky_actions": environment.sticky_actions,
        "episodes": len(scored.returns),
        "return": scored.raw._asdict(),
        "human_normalized": scored.normalized._asdict(),
        "returns": scored.returns.tolist(),
    }


def _say_scores(run: pathlib.Path, scored: _Scored) -> None:
    config = scored.agent.config
    game, sticky = config.environment.game, config.environment.sticky_actions
    say(f"{run}: {config.learner.algorithm} on {game}, {scored.agent.frames:,} frames")
    played = f"{counted(len(scored.returns), 'episode')} at epsilon {scored.epsilon:g}"
    played += f", sticky actions {sticky:g}" if sticky else ""
    say(f"{played}, 95 % bootstrap interval of the mean:")
    say(f"  return            {_text(scored.raw, 1)}")
    say(f"  human-normalized  {_text(scored.normalized, 3)}")
    low, middle, high = np.percentile(scored.returns, [0, 50, 100])
    say(f"  episodes from {low:,.1f} to {high:,.1f}, median {middle:,.1f}")


def _text(interval: Interval, digits: int) -> str:
    mean = f"{interval.mean:,.{digits}f}"
    if interval.low is None or interval.high is None:
        return f"{mean} (one episode: no interval)"
    return f"{mean} [{interval.low:,.{digits}f}, {interval.high:,.{digits}f}]"
