"""The color screen beside the agent's gray one."""

import numpy as np
import pytest

from actors.screen import SCREEN_SHAPE, ColorTwin
from tests.actors.atari import atari


# Seed 5 begins with 13 no-ops: with at least 25 it is started again.
@pytest.mark.parametrize(("min_noops", "sticky_actions"), [(0, 0.0), (25, 0.0), (0, 0.25)])
def test_the_color_twin_plays_the_agents_own_game(min_noops, sticky_actions):
    options = {"full_action_set": False, "action_repeat": 4, "max_episode_frames": 2000}
    options |= {"sticky_actions": sticky_actions}
    noops = {"max_noops": 30, "min_noops": min_noops}
    batch = atari("breakout", num_envs=1, seed=5, **noops, **options)
    twin = ColorTwin("breakout", seed=5, **noops, **options)
    batch.reset()
    assert twin.reset().pixels.shape == SCREEN_SHAPE
    assert batch.action_names == ("NOOP", "FIRE", "RIGHT", "LEFT")
    rng, total = np.random.default_rng(0), 0.0
    for action in rng.integers(0, 4, 300):
        timestep, screen = batch.step(np.array([action])), twin.step(int(action))
        assert screen.score == timestep.observation.score[0]
        total += screen.score
    assert total > 0
    # The same picture too, as far as gray says.
    gray = screen.pixels @ np.array([0.299, 0.587, 0.114])
    small = timestep.observation.stack[0, -1]
    assert abs(gray.mean() - small.mean()) < 3
    batch.close(), twin.close()
