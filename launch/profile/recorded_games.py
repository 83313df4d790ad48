"""Games that cost nothing: a recording played over and over, whatever the actions are.

For actors of which only the way to replay is to be measured: no emulator, no network.
"""

import itertools
from typing import Any

import dm_env
import numpy as np

from actors.environment import MID, AtariBatch
from launch import build
from launch.config import Config

_STEPS = 200


class RecordedGames(AtariBatch):
    """Real frames of random play as one endless episode in every game."""

    def __init__(self, config: Config, *, num_envs: int, seed: int, **_: Any):
        games = build.make_environment(config, num_envs=num_envs, seed=seed, training=True)
        self.num_envs, self.num_actions = num_envs, games.num_actions
        self.action_repeat = games.action_repeat
        rng = np.random.default_rng(seed)
        self._first = games.reset()
        played = [games.step(rng.integers(0, self.num_actions, num_envs)) for _ in range(_STEPS)]
        games.close()
        mid = np.full(num_envs, MID, np.int8)
        alive = np.ones(num_envs, np.float32)
        self._steps = itertools.cycle(
            [timestep._replace(step_type=mid, discount=alive) for timestep in played]
        )

    def reset(self) -> dm_env.TimeStep:
        """The first time step of the recording."""
        return self._first

    def send(self, actions: np.ndarray) -> None:
        """Nobody acts."""

    def recv(self) -> dm_env.TimeStep:
        """The next time step of the recording."""
        return next(self._steps)

    def close(self) -> None:
        """Nothing to end."""
