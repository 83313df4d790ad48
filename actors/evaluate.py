"""Evaluation: whole episodes at a fixed epsilon, scored by the true game score."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from actors.environment import FIRST, LAST, AtariBatch
from actors.exploration import epsilon_greedy

# One call of the network serves as many games; with more, all wait for the longest episodes.
_MAX_GAMES = 8


class EpisodeScores(NamedTuple):
    """Scores and lengths of finished episodes."""

    returns: np.ndarray  # float [episodes]
    steps: np.ndarray  # int [episodes]


def games_at_once(episodes: int) -> int:
    """How many games to play at a time for these episodes."""
    return min(episodes, _MAX_GAMES)


def play_episodes(
    environment: AtariBatch,
    greedy_actions: Callable[[np.ndarray], np.ndarray],
    *,
    episodes: int,
    epsilon: float,
    rng: np.random.Generator,
    should_stop: Callable[[], bool] = lambda: False,
    on_episode: Callable[[float], None] = lambda episode_return: None,
) -> EpisodeScores | None:
    """Plays whole episodes from fresh starts; None if stopped before the last one ended.

    Every game plays its own share to the end, so short episodes are not over-represented.
    `on_episode` is told each return as the episode ends.
    """
    if episodes < 1:
        raise ValueError(f"episodes={episodes}: an evaluation needs at least one")
    share = np.full(environment.num_envs, episodes // environment.num_envs)
    share[: episodes % environment.num_envs] += 1
    returns: list[float] = []
    steps: list[int] = []
    running_return, running_steps = np.zeros(len(share)), np.zeros(len(share), np.int64)
    timestep = environment.reset()
    while share.any():
        if should_stop():
            return None
        greedy = greedy_actions(timestep.observation.stack)
        choice = epsilon_greedy(greedy, epsilon, environment.num_actions, rng)
        timestep = environment.step(choice.actions)
        played = timestep.step_type != FIRST
        running_return += np.where(played, timestep.observation.score, 0.0)
        running_steps += played
        for game in np.nonzero(timestep.step_type == LAST)[0]:
            if share[game]:
                share[game] -= 1
                returns.append(float(running_return[game]))
                steps.append(int(running_steps[game]))
                on_episode(returns[-1])
            running_return[game], running_steps[game] = 0.0, 0
    return EpisodeScores(np.array(returns), np.array(steps))


def play_frames(
    environment: AtariBatch,
    greedy_actions: Callable[[np.ndarray], np.ndarray],
    *,
    frames: int,
    epsilon: float,
    rng: np.random.Generator,
    should_stop: Callable[[], bool] = lambda: False,
) -> EpisodeScores | None:
    """Plays one game for a number of frames, as dqn_zoo evaluates; None if stopped before.

    Episodes that end count. The one under way at the end does not, unless it is the only one.
    """
    if environment.num_envs != 1:
        raise ValueError(f"{environment.num_envs} games: an evaluation by frames plays one")
    returns, steps = [0.0], [0]
    timestep = environment.reset()
    for _ in range(max(frames // environment.action_repeat, 1)):
        if should_stop():
            return None
        if timestep.step_type[0] == LAST:
            returns.append(0.0)
            steps.append(0)
        greedy = greedy_actions(timestep.observation.stack)
        choice = epsilon_greedy(greedy, epsilon, environment.num_actions, rng)
        timestep = environment.step(choice.actions)
        if timestep.step_type[0] != FIRST:
            returns[-1] += float(timestep.observation.score[0])
            steps[-1] += 1
    if timestep.step_type[0] != LAST and len(returns) > 1:
        del returns[-1], steps[-1]
    return EpisodeScores(np.array(returns), np.array(steps))


def run_evaluator(
    *,
    evaluate: Callable[[Any], EpisodeScores | None],
    next_params: Callable[[int], tuple[Any, int, bool] | None],
    report: Callable[[Any, int, EpisodeScores], None],
    period_frames: int,
    should_stop: Callable[[], bool],
) -> None:
    """Evaluates every `period_frames` global frames, and once more when training has finished.

    `next_params(frames)` waits briefly for parameters published at that many global frames or later
    (or the finished ones) and returns (params, frames, finished), or None if there are none yet.
    `report` is told these params and frames with the scores.
    """
    due_frames = 0
    while not should_stop():
        newest = next_params(due_frames)
        if newest is None:
            continue
        params, frames, finished = newest
        scores = evaluate(params)
        if scores is None:
            return
        report(params, frames, scores)
        if finished:
            return
        due_frames = next_evaluation(frames, period_frames)


def next_evaluation(frames: int, period_frames: int) -> int:
    """Global frames at which the evaluation after one at `frames` is due."""
    return (frames // period_frames + 1) * period_frames
