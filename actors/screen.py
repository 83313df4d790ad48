"""The game in color, at full size: a twin of the game that an agent plays.

The agent's environment gives small gray frames only. A second emulator with the same seed and the
same actions is in the same state: all that is random in a game, its seed fixes.
"""

from typing import NamedTuple

import numpy as np

from actors.environment import make_emulators, with_enough_noops

SCREEN_SHAPE = (210, 160, 3)


class Screen(NamedTuple):
    """What a person would see, and the score of the step that led there."""

    pixels: np.ndarray  # uint8 [210, 160, 3]
    score: float


class ColorTwin:
    """One game in color; give it the seed, the options and the actions of the agent's own."""

    def __init__(
        self,
        game: str,
        *,
        seed: int,
        full_action_set: bool,
        action_repeat: int,
        max_episode_frames: int,
        max_noops: int,
        min_noops: int,
        sticky_actions: float,
    ):
        height, width, _ = SCREEN_SHAPE
        self._envs = make_emulators(
            game,
            1,
            full_action_set=full_action_set,
            action_repeat=action_repeat,
            max_episode_frames=max_episode_frames,
            max_noops=max_noops,
            sticky_actions=sticky_actions,
            grayscale=False,
            img_height=height,
            img_width=width,
            stack_num=1,
        )
        self._seed: int | None = seed
        self._min_noops = min_noops

    def reset(self) -> Screen:
        """Starts an episode; the first call seeds the game."""
        stack, info = self._envs.reset(seed=self._seed)
        self._seed = None
        stack, _ = with_enough_noops(self._envs, stack, info, np.ones(1, bool), self._min_noops)
        return Screen(stack[0, 0], 0.0)

    def step(self, action: int) -> Screen:
        """Takes one action."""
        stack, score, *_ = self._envs.step(np.array([action], np.int32))
        return Screen(stack[0, 0], float(score[0]))

    def close(self) -> None:
        """Ends the emulator thread."""
        self._envs.close()
