"""A finished evaluation as a row of metrics."""

from typing import Any

from actors import games
from actors.evaluate import EpisodeScores
from launch.config import Config


def evaluation_row(config: Config, frames: int, scores: EpisodeScores) -> dict[str, Any]:
    """One evaluation, raw and human-normalized."""
    mean = float(scores.returns.mean())
    return {
        "frames": frames,
        "eval_return": mean,
        "eval_return_std": float(scores.returns.std()),
        "eval_episodes": len(scores.returns),
        "eval_episode_frames": config.frames_of(int(scores.steps.sum())) / len(scores.steps),
        "human_normalized": games.human_normalized(config.environment.game, mean),
    }
