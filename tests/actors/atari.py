"""Games as the paper plays them, but for what a test says."""

from typing import Any, TypeVar

from actors.environment import AtariBatch

Games = TypeVar("Games", bound=AtariBatch)

RULES = {
    "full_action_set": False,
    "life_loss_ends_discount": True,
    "action_repeat": 4,
    "max_episode_frames": 108_000,
    "max_noops": 30,
    "min_noops": 0,
    "sticky_actions": 0.0,
}


def atari(game: str, kind: type[Games] = AtariBatch, **options: Any) -> Games:
    return kind(game, **{**RULES, **options})
