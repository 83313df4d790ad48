"""Exploration: schedules by hand, and epsilon-greedy choice by counting."""

from typing import Any

import numpy as np
import pytest

from actors.exploration import LadderEpsilon, LinearEpsilon, epsilon_greedy, ladder_epsilon


class TestLinearEpsilon:
    @pytest.mark.parametrize(
        ("frames", "epsilon"),
        [(0, 1.0), (250, 0.7525), (500, 0.505), (1000, 0.01), (1001, 0.01), (10**9, 0.01)],
    )
    def test_it_falls_in_a_line_then_stays(self, frames: int, epsilon: float) -> None:
        assert LinearEpsilon(final=0.01, decay_frames=1000)(frames) == pytest.approx(epsilon)

    @pytest.mark.parametrize(
        ("frames", "epsilon"), [(0, 1.0), (399, 1.0), (400, 1.0), (900, 0.505), (1400, 0.01)]
    )
    def test_it_may_start_to_fall_later(self, frames: int, epsilon: float) -> None:
        late = LinearEpsilon(final=0.01, decay_frames=1000, start_frames=400)
        assert late(frames) == pytest.approx(epsilon)

    def test_without_a_decay_it_is_final_from_the_start(self) -> None:
        assert LinearEpsilon(final=0.5, decay_frames=0)(0) == 0.5


class TestLadder:
    def test_its_formula_is_that_of_ape_x(self) -> None:
        assert ladder_epsilon(0, 8) == 0.4
        assert ladder_epsilon(7, 8) == pytest.approx(0.4**8)
        assert ladder_epsilon(3, 8) == pytest.approx(0.4**4)
        assert ladder_epsilon(1, 3) == pytest.approx(0.4**4.5)

    def test_a_single_game_overall_gets_the_base(self) -> None:
        assert LadderEpsilon(actor=0, num_actors=1, envs_per_actor=1)(0).tolist() == [0.4]

    def test_with_one_game_per_actor_it_is_a_rung_per_actor(self) -> None:
        for actor in range(5):
            ladder = LadderEpsilon(actor=actor, num_actors=5, envs_per_actor=1)
            assert ladder(0).tolist() == [ladder_epsilon(actor, 5)]

    def test_it_runs_over_all_games_of_all_actors(self) -> None:
        actors = [LadderEpsilon(actor=i, num_actors=2, envs_per_actor=4) for i in range(2)]
        epsilons = np.concatenate([ladder(0) for ladder in actors])
        np.testing.assert_allclose(epsilons, 0.4 ** np.arange(1.0, 9.0))

    def test_it_does_not_change_with_frames_and_cannot_be_changed(self) -> None:
        ladder = LadderEpsilon(actor=0, num_actors=1, envs_per_actor=2)
        np.testing.assert_array_equal(ladder(0), ladder(10**9))
        with pytest.raises(ValueError, match="read-only"):
            ladder(0)[0] = 1.0


class TestEpsilonGreedy:
    def test_epsilon_zero_is_greedy(self) -> None:
        greedy = np.arange(1000, dtype=np.int32) % 6
        choice = epsilon_greedy(greedy, 0.0, 6, np.random.default_rng(0))
        np.testing.assert_array_equal(choice.actions, greedy)
        assert choice.greedy is greedy

    def test_epsilon_one_is_uniform(self) -> None:
        counts = self.counts(1.0, np.zeros(60_000, np.int32))
        # Five standard deviations of a binomial count; the seed is fixed.
        assert np.abs(counts - 10_000).max() < 5 * np.sqrt(60_000 * (1 / 6) * (5 / 6))

    def test_in_between_each_action_has_a_sixth_of_epsilon_and_greedy_the_rest(self) -> None:
        counts = self.counts(0.3, np.full(60_000, 2, np.int32))
        expected = np.full(6, 0.3 / 6)
        expected[2] += 0.7
        spread = np.sqrt(60_000 * expected * (1 - expected))
        assert (np.abs(counts - 60_000 * expected) < 5 * spread).all()

    def test_each_game_explores_by_its_own_epsilon(self) -> None:
        rng = np.random.default_rng(0)
        epsilon = np.array([0.0, 1.0, 0.5])
        greedy = np.array([3, 3, 3], np.int32)
        actions = np.array([epsilon_greedy(greedy, epsilon, 4, rng).actions for _ in range(20_000)])
        shares = (actions == 3).mean(axis=0)
        np.testing.assert_allclose(shares, [1.0, 0.25, 0.5 + 0.125], atol=0.02)
        assert shares[0] == 1.0

    def test_actions_are_int32(self) -> None:
        choice = epsilon_greedy(np.zeros(3, np.int64), 0.5, 4, np.random.default_rng(0))
        assert choice.actions.dtype == np.int32

    def test_the_same_generator_state_gives_the_same_actions(self) -> None:
        greedy = np.zeros(100, np.int32)
        one, same, other = (
            epsilon_greedy(greedy, 0.5, 18, np.random.default_rng(seed)).actions
            for seed in (4, 4, 5)
        )
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()

    @pytest.mark.parametrize("num_actions", range(1, 19))
    def test_the_largest_possible_draw_is_still_an_action(self, num_actions: int) -> None:
        class Largest:
            def random(self, shape: Any) -> np.ndarray:
                return np.full(shape, np.nextafter(1.0, 0.0))

        choice = epsilon_greedy(np.zeros(1, np.int32), 1.0, num_actions, Largest())  # type: ignore[arg-type]
        assert choice.actions.tolist() == [num_actions - 1]

    def counts(self, epsilon: float, greedy: np.ndarray) -> np.ndarray:
        choice = epsilon_greedy(greedy, epsilon, 6, np.random.default_rng(0))
        return np.bincount(choice.actions, minlength=6)
