"""Evaluation: whole episodes, each game's exact share, the true score; and when it happens."""

from collections.abc import Iterator
from typing import Any

import dm_env
import numpy as np
import pytest

from actors.environment import FIRST, LAST, AtariBatch
from actors.evaluate import EpisodeScores, play_episodes, play_frames, run_evaluator
from tests.actors.atari import atari


class RecordedBatch(AtariBatch):
    """A real batch that remembers what it showed."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs | {"life_loss_ends_discount": False})
        self.shown: list[dm_env.TimeStep] = []
        self.actions: list[np.ndarray] = []

    def reset(self) -> dm_env.TimeStep:
        self.shown, self.actions = [super().reset()], []
        return self.shown[0]

    def send(self, actions: np.ndarray) -> None:
        self.actions.append(actions)
        super().send(actions)

    def recv(self) -> dm_env.TimeStep:
        self.shown.append(super().recv())
        return self.shown[-1]

    def episodes(self, game: int) -> list[tuple[float, int, int]]:
        """Finished episodes of one game since the reset: score, steps, and when they ended."""
        finished, score, steps = [], 0.0, 0
        for now, timestep in enumerate(self.shown):
            if timestep.step_type[game] == FIRST:
                score, steps = 0.0, 0
                continue
            score += float(timestep.observation.score[game])
            steps += 1
            if timestep.step_type[game] == LAST:
                finished.append((score, steps, now))
        return finished


@pytest.mark.parametrize(
    ("frames", "expected_episodes"),
    [(4 * 40, 1), (4 * 118, 2), (4 * 117, 2), (4 * 116, 1), (1, 1)],
)
def test_an_evaluation_by_frames_counts_the_episodes_that_end(frames, expected_episodes):
    """Episodes of 58 steps; a restart is a step that plays nothing."""
    batch = atari(
        "breakout", RecordedBatch, num_envs=1, seed=3, max_noops=0, max_episode_frames=4 * 58
    )
    rng = np.random.default_rng(0)
    scores = play_frames(batch, no_preference, frames=frames, epsilon=1.0, rng=rng)
    assert scores is not None
    ended = batch.episodes(0)
    assert len(batch.actions) == max(frames // 4, 1)
    assert len(scores.returns) == expected_episodes
    if ended:
        assert scores.returns.tolist() == [score for score, _, _ in ended]
        assert scores.steps.tolist() == [steps for _, steps, _ in ended]
    else:
        assert scores.steps.tolist() == [len(batch.actions)]
    batch.close()


def test_an_evaluation_by_frames_stops_when_asked_and_plays_one_game():
    batch = atari("pong", num_envs=1, seed=1)
    options = {"frames": 400, "epsilon": 0.0, "rng": np.random.default_rng(0)}
    assert play_frames(batch, no_preference, should_stop=lambda: True, **options) is None
    batch.close()
    two = atari("pong", num_envs=2, seed=1)
    with pytest.raises(ValueError, match="2 games"):
        play_frames(two, no_preference, **options)
    two.close()


def no_preference(stacks: np.ndarray) -> np.ndarray:
    return np.zeros(len(stacks), np.int32)


def evaluate(environment: AtariBatch, episodes: int, **options: Any) -> EpisodeScores | None:
    # A bound on the steps, so that an evaluation that never ends is a failure and not a hang.
    looks = iter(range(2000))
    arguments = {
        "epsilon": 1.0,
        "rng": np.random.default_rng(0),
        "should_stop": lambda: next(looks, None) is None,
        **options,
    }
    return play_episodes(environment, no_preference, episodes=episodes, **arguments)


@pytest.fixture(scope="module")
def breakout() -> Iterator[RecordedBatch]:
    environment = atari("breakout", RecordedBatch, num_envs=2, seed=3)
    yield environment
    environment.close()


@pytest.fixture(scope="module")
def pong() -> Iterator[RecordedBatch]:
    """Episodes of ten steps."""
    environment = atari("pong", RecordedBatch, num_envs=2, seed=3, max_episode_frames=40)
    yield environment
    environment.close()


class TestPlayEpisodes:
    def test_each_game_plays_its_own_share_to_the_end(self, breakout: RecordedBatch) -> None:
        scores = evaluate(breakout, 3)
        assert scores is not None
        first, second = breakout.episodes(0)[:2], breakout.episodes(1)[:1]
        assert (len(first), len(second)) == (2, 1)
        expected = sorted([*first, *second], key=lambda episode: episode[2])
        assert scores.returns.tolist() == [score for score, _, _ in expected]
        assert scores.steps.tolist() == [steps for _, steps, _ in expected]
        # Not a step more than the last of them needs.
        assert len(breakout.shown) - 1 == expected[-1][2]

    def test_a_slow_game_is_waited_for_and_extra_episodes_are_not_counted(
        self, breakout: RecordedBatch
    ) -> None:
        # The second game presses nothing, so it never loses a ball; its frame limit is far off.
        def only_the_first_plays(stacks: np.ndarray) -> np.ndarray:
            return np.array([len(breakout.shown) % 4, 0], np.int32)

        looks = iter(range(600))
        scores = play_episodes(
            breakout,
            only_the_first_plays,
            episodes=2,
            epsilon=0.0,
            rng=np.random.default_rng(0),
            should_stop=lambda: next(looks, None) is None,
        )
        assert scores is None
        assert len(breakout.episodes(0)) >= 2

    def test_returns_are_true_scores_not_clipped_rewards(self) -> None:
        environment = atari("ms_pacman", RecordedBatch, num_envs=1, seed=5, max_episode_frames=400)
        scores = evaluate(environment, 1)
        environment.close()
        assert scores is not None
        true_score = sum(float(t.observation.score[0]) for t in environment.shown)
        assert scores.returns.tolist() == [true_score]
        assert true_score > sum(float(timestep.reward[0]) for timestep in environment.shown)

    @pytest.mark.parametrize("episodes", [1, 2, 5])
    def test_it_gives_exactly_so_many_episodes(self, pong: RecordedBatch, episodes: int) -> None:
        scores = evaluate(pong, episodes)
        assert scores is not None
        assert scores.returns.shape == (episodes,)
        assert scores.steps.tolist() == [10] * episodes

    def test_every_evaluation_starts_fresh_episodes(self, pong: RecordedBatch) -> None:
        stops = iter([False] * 4 + [True])
        assert evaluate(pong, 2, should_stop=lambda: next(stops)) is None
        scores = evaluate(pong, 2)
        assert scores is not None
        assert scores.steps.tolist() == [10, 10]

    def test_when_stopped_it_returns_nothing_at_once(self, pong: RecordedBatch) -> None:
        stops = iter([False] * 9 + [True])
        assert evaluate(pong, 2, should_stop=lambda: next(stops)) is None
        assert len(pong.shown) - 1 == 9

    def test_it_plays_greedily_at_epsilon_zero(self, pong: RecordedBatch) -> None:
        chosen: list[np.ndarray] = []

        def greedy(stacks: np.ndarray) -> np.ndarray:
            chosen.append((stacks[:, -1].sum(axis=(1, 2)) % 6).astype(np.int32))
            return chosen[-1]

        play_episodes(pong, greedy, episodes=2, epsilon=0.0, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(np.array(pong.actions), np.array(chosen))
        assert len(np.unique(pong.actions)) > 1

    def test_no_episodes_are_refused(self, pong: RecordedBatch) -> None:
        with pytest.raises(ValueError, match="episodes=0"):
            evaluate(pong, 0)


SCORES = EpisodeScores(np.array([1.0]), np.array([10]))


class Schedule:
    """Offers parameters one after another and notes what is evaluated and asked."""

    def __init__(self, offers: list[tuple[Any, int, bool] | None]):
        self._offers = iter(offers)
        self.asked: list[int] = []
        self.evaluated: list[Any] = []
        self.reported: list[int] = []
        self.exhausted = False

    def next_params(self, due_frames: int) -> tuple[Any, int, bool] | None:
        self.asked.append(due_frames)
        try:
            return next(self._offers)
        except StopIteration:
            self.exhausted = True
            return None

    def run(self, scores: EpisodeScores | None = SCORES) -> None:
        def evaluate(params: Any) -> EpisodeScores | None:
            self.evaluated.append(params)
            return scores

        run_evaluator(
            evaluate=evaluate,
            next_params=self.next_params,
            report=lambda params, frames, scores: self.reported.append(frames),
            period_frames=100,
            should_stop=lambda: self.exhausted,
        )


class TestRunEvaluator:
    def test_it_asks_for_the_next_multiple_of_the_period(self) -> None:
        schedule = Schedule([("a", 0, False), ("b", 130, False), ("c", 200, False)])
        schedule.run()
        assert schedule.evaluated == ["a", "b", "c"]
        assert schedule.reported == [0, 130, 200]
        assert schedule.asked == [0, 100, 200, 300]

    def test_it_asks_again_while_there_is_nothing_new(self) -> None:
        schedule = Schedule([None, None, ("a", 5, False), None])
        schedule.run()
        assert schedule.evaluated == ["a"]
        assert schedule.asked == [0, 0, 0, 100, 100]

    def test_the_finished_parameters_are_evaluated_once_and_last(self) -> None:
        schedule = Schedule([("a", 0, False), ("b", 150, True), ("c", 200, False)])
        schedule.run()
        assert schedule.evaluated == ["a", "b"]
        assert schedule.reported == [0, 150]
        assert not schedule.exhausted

    def test_an_evaluation_that_was_stopped_is_not_reported(self) -> None:
        schedule = Schedule([("a", 0, False), ("b", 100, False)])
        schedule.run(scores=None)
        assert schedule.evaluated == ["a"]
        assert schedule.reported == []

    def test_when_stopped_it_asks_for_nothing(self) -> None:
        schedule = Schedule([("a", 0, False)])
        schedule.exhausted = True
        schedule.run()
        assert schedule.asked == []
