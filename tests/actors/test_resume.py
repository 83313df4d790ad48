"""Games that are put back where they were: everything after is the same."""

import numpy as np
import pytest

from actors.resume import RecordedBatch
from tests.actors.atari import atari

NUM_ENVS = 3


def make(game: str, **options: float) -> RecordedBatch:
    # Short enough that several episodes end in a test.
    return atari(game, RecordedBatch, num_envs=NUM_ENVS, seed=7, max_episode_frames=230, **options)


# Of starts with one no-op or none, every other one is thrown away.
@pytest.mark.parametrize(
    ("game", "noops"), [("breakout", {}), ("seaquest", {"min_noops": 1, "max_noops": 1})]
)
def test_restored_games_go_on_as_if_nothing_had_happened(game, noops):
    rng = np.random.default_rng(0)
    games, restored = make(game, **noops), make(game, **noops)
    last = games.reset()
    for step in range(125):
        # At the start, in mid-game, around the end of an episode (57 is its last step), and late.
        if step in (0, 30, 57, 58, 59, 118):
            stacks = restored.restore(games.state())
            np.testing.assert_array_equal(stacks, last.observation.stack)
        actions = rng.integers(games.num_actions, size=NUM_ENVS).astype(np.int32)
        last, other = games.step(actions), restored.step(actions)
        for expected, found in zip(last[:3], other[:3], strict=True):
            np.testing.assert_array_equal(expected, found)
        for expected, found in zip(last.observation, other.observation, strict=True):
            np.testing.assert_array_equal(expected, found)
    assert (games.state()["restarts"] > 1).all()


def test_games_of_different_ages_arrive_together():
    state = {
        "restarts": np.array([1, 3, 2]),
        "lengths": np.array([5, 1, 0]),
        "actions": np.array([1, 3, 3, 2, 2, 1], np.uint8),
    }
    stacks = make("breakout").restore(state)
    for game, actions in enumerate(([1, 3, 3, 2, 2], [1], [])):
        alone = atari("breakout", RecordedBatch, num_envs=1, seed=7 + game)
        for _ in range(state["restarts"][game]):
            last = alone.reset()
        for action in actions:
            last = alone.step(np.array([action]))
        np.testing.assert_array_equal(stacks[game], last.observation.stack[0])


def test_games_never_started_are_restored_as_that():
    games, restored = make("pong"), make("pong")
    assert restored.restore(games.state()) is None
    np.testing.assert_array_equal(
        games.reset().observation.stack, restored.reset().observation.stack
    )


def test_games_with_sticky_actions_are_not_recorded():
    with pytest.raises(ValueError, match=r"sticky_actions=0\.25"):
        make("pong", sticky_actions=0.25)
