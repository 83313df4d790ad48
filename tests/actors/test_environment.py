"""The environment against the emulator itself: step types, discounts, scores, seeds and pictures.

Real games throughout. Where a test needs to know what truly happened it plays the same actions in a
bare `AtariVectorEnv`.
"""

import copy
import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import dm_env
import numpy as np
import pytest
from ale_py import ALEInterface, roms
from ale_py.vector_env import AtariVectorEnv

from actors.environment import FIRST, LAST, MID, AtariBatch
from actors.games import UnknownGameError, reference_scores
from tests.actors.atari import atari


def random_actions(num_steps: int, num_envs: int, num_actions: int) -> np.ndarray:
    return np.random.default_rng(0).integers(num_actions, size=(num_steps, num_envs))


def play(actions: np.ndarray, game: str, **options: Any) -> list[dm_env.TimeStep]:
    """The first step and those that the actions [T, E] lead to."""
    batch = atari(game, num_envs=actions.shape[1], **options)
    timesteps = [batch.reset(), *(batch.step(row) for row in actions)]
    batch.close()
    return timesteps


def column(timesteps: Iterable[dm_env.TimeStep], field: str) -> np.ndarray:
    return np.array([getattr(timestep, field) for timestep in timesteps])


def stacks(timesteps: Iterable[dm_env.TimeStep]) -> np.ndarray:
    return np.array([timestep.observation.stack for timestep in timesteps])


def scores(timesteps: Iterable[dm_env.TimeStep]) -> np.ndarray:
    return np.array([timestep.observation.score for timestep in timesteps])


class Breakout(NamedTuple):
    """One sequence of actions, played three ways."""

    training: list[dm_env.TimeStep]
    whole_games: list[dm_env.TimeStep]
    truth: list[Any]  # what the emulator's own steps returned


@pytest.fixture(scope="module")
def breakout() -> Breakout:
    actions = random_actions(450, 2, 4)
    bare = AtariVectorEnv(
        "breakout", 2, num_threads=1, noop_max=31, reward_clipping=False, use_fire_reset=False
    )
    _, info = bare.reset(seed=3)
    truth: list[Any] = [(None, np.zeros(2), np.zeros(2, bool), np.zeros(2, bool), info)]
    truth += [bare.step(row) for row in actions]
    bare.close()
    return Breakout(
        training=play(actions, "breakout", seed=3),
        whole_games=play(actions, "breakout", seed=3, life_loss_ends_discount=False),
        truth=truth,
    )


class TestBatch:
    def test_every_field_has_a_leading_axis_and_a_small_type(self, breakout: Breakout) -> None:
        for timestep in breakout.training[:3]:
            assert timestep.step_type.shape == (2,)
            assert timestep.step_type.dtype == np.int8
            for values in (timestep.reward, timestep.discount, timestep.observation.score):
                assert values.shape == (2,)
                assert values.dtype == np.float32
            assert timestep.observation.stack.shape == (2, 4, 84, 84)
            assert timestep.observation.stack.dtype == np.uint8

    def test_step_types_compare_equal_to_those_of_dm_env(self) -> None:
        assert tuple(dm_env.StepType) == (FIRST, MID, LAST)

    def test_a_game_that_ended_starts_again_with_the_next_step(self, breakout: Breakout) -> None:
        step_type = column(breakout.training, "step_type")
        assert (step_type[0] == FIRST).all()
        np.testing.assert_array_equal(step_type[1:] == FIRST, step_type[:-1] == LAST)
        terminated = np.array([step[2] for step in breakout.truth])
        np.testing.assert_array_equal(step_type == LAST, terminated)
        assert terminated.sum(axis=0).tolist() == [1, 2]

    def test_a_first_step_has_no_reward_and_nothing_before_its_frame(
        self, breakout: Breakout
    ) -> None:
        for timestep in breakout.training:
            first = timestep.step_type == FIRST
            assert (timestep.reward[first] == 0.0).all()
            assert (timestep.observation.score[first] == 0.0).all()
            assert (timestep.discount[first] == 1.0).all()
            assert not timestep.observation.stack[first, :3].any()
            assert timestep.observation.stack[first, 3].any(axis=(1, 2)).all()

    def test_a_lost_life_ends_the_discount_but_not_the_episode(self, breakout: Breakout) -> None:
        lives = np.array([step[4]["lives"] for step in breakout.truth])
        lost = np.vstack([[False, False], lives[1:] < lives[:-1]])
        np.testing.assert_array_equal(column(breakout.training, "discount") == 0.0, lost)
        step_type = column(breakout.training, "step_type")
        assert (lost & (step_type == MID)).sum() >= 8
        assert (step_type[lost] != FIRST).all()

    def test_without_life_loss_only_the_end_of_the_game_ends_the_discount(
        self, breakout: Breakout
    ) -> None:
        step_type = column(breakout.whole_games, "step_type")
        np.testing.assert_array_equal(column(breakout.whole_games, "discount"), step_type != LAST)

    def test_life_loss_changes_nothing_but_the_discount(self, breakout: Breakout) -> None:
        training, whole_games = breakout.training, breakout.whole_games
        np.testing.assert_array_equal(stacks(training), stacks(whole_games))
        for field in ("step_type", "reward"):
            np.testing.assert_array_equal(column(training, field), column(whole_games, field))

    def test_a_stack_is_the_one_before_it_moved_by_a_frame(self, breakout: Breakout) -> None:
        for before, after in zip(breakout.training[:-1], breakout.training[1:], strict=True):
            goes_on = after.step_type != FIRST
            np.testing.assert_array_equal(
                after.observation.stack[goes_on, :3], before.observation.stack[goes_on, 1:]
            )

    def test_later_steps_leave_earlier_arrays_alone(self) -> None:
        batch = atari("breakout", num_envs=1, seed=3)
        timesteps, copies = [batch.reset()], []
        for action in random_actions(60, 1, 4):
            copies.append(copy.deepcopy(timesteps[-1]))
            timesteps.append(batch.step(action))
        batch.close()
        np.testing.assert_array_equal(stacks(timesteps[:-1]), stacks(copies))
        for field in ("step_type", "reward", "discount"):
            np.testing.assert_array_equal(column(timesteps[:-1], field), column(copies, field))


class TestScoresAndRewards:
    def test_the_score_is_true_and_the_reward_is_clipped(self) -> None:
        actions = random_actions(100, 2, 9)
        timesteps = play(actions, "ms_pacman", seed=5)
        bare = AtariVectorEnv(
            "ms_pacman", 2, num_threads=1, noop_max=31, reward_clipping=False, use_fire_reset=False
        )
        bare.reset(seed=5)
        true_scores = np.array([bare.step(row)[1] for row in actions])
        bare.close()
        assert true_scores.max() > 1
        np.testing.assert_array_equal(scores(timesteps)[1:], true_scores)
        np.testing.assert_array_equal(
            column(timesteps, "reward")[1:], np.clip(true_scores, -1.0, 1.0)
        )

    def test_a_lost_point_in_pong_is_minus_one_and_is_not_a_lost_life(self) -> None:
        timesteps = play(np.zeros((120, 1), int), "pong", seed=1)
        assert column(timesteps, "reward").min() == -1.0
        assert (column(timesteps, "discount") == 1.0).all()


class TestLimits:
    @pytest.mark.parametrize(
        ("training", "action_repeat", "steps"), [(True, 4, 10), (True, 2, 20), (False, 4, 10)]
    )
    def test_truncation_counts_frames_and_is_not_termination(
        self, training: bool, action_repeat: int, steps: int
    ) -> None:
        timesteps = play(
            np.zeros((2 * steps + 2, 2), int),
            "pong",
            seed=1,
            life_loss_ends_discount=training,
            action_repeat=action_repeat,
            max_episode_frames=40,
        )
        episode = [FIRST, *[MID] * (steps - 1), LAST]
        step_type = column(timesteps, "step_type")
        assert step_type[:, 0].tolist() == [*episode, *episode, FIRST]
        np.testing.assert_array_equal(step_type[:, 0], step_type[:, 1])
        assert (column(timesteps, "discount") == 1.0).all()

    def test_starting_with_fewer_lives_than_the_last_game_had_left_is_no_loss(self) -> None:
        batch = atari("breakout", num_envs=1, seed=1, max_episode_frames=4)
        batch.reset()
        assert batch.step(np.zeros(1, int)).step_type[0] == LAST
        batch._lives = np.array([9])  # as if it had won some
        restarted = batch.step(np.zeros(1, int))
        batch.close()
        assert (restarted.step_type[0], restarted.discount[0]) == (FIRST, 1.0)

    def test_an_action_is_repeated_for_so_many_frames(self) -> None:
        batch = atari("pong", num_envs=1, seed=1, action_repeat=3, max_noops=0)
        batch.reset()
        frame_numbers = [
            batch._envs.step(np.zeros(1, np.int32))[4]["frame_number"].item() for _ in range(5)
        ]
        batch.close()
        assert frame_numbers == [3, 6, 9, 12, 15]

    @pytest.mark.parametrize("max_noops", [0, 3])
    def test_starts_have_from_none_to_max_noops(self, max_noops: int) -> None:
        batch = atari("pong", num_envs=2, seed=1, max_noops=max_noops)
        starts = [batch._envs.reset()[1]["episode_frame_number"] for _ in range(30)]
        batch.close()
        assert set(np.concatenate(starts).tolist()) == set(range(max_noops + 1))

    @pytest.mark.parametrize("min_noops", [1, 3])
    def test_starts_have_from_min_noops_to_max_noops(self, min_noops: int) -> None:
        starts = []

        class Watched(AtariBatch):
            def _with_enough_noops(self, stack: Any, info: Any, first: np.ndarray) -> Any:
                stack, info = super()._with_enough_noops(stack, info, first)
                starts.extend(info["episode_frame_number"][first].tolist())
                return stack, info

        options = {"max_noops": 3, "min_noops": min_noops, "max_episode_frames": 13}
        batch = atari("pong", Watched, num_envs=3, seed=1, **options)
        before, num_firsts = batch.reset(), 3
        for step in range(90):
            timestep = batch.step(np.full(3, step % 2))
            first = timestep.step_type == FIRST
            num_firsts += first.sum()
            # Games end at different steps: those that go on are not disturbed by a start.
            for game in np.nonzero(~first)[0]:
                stack, earlier = (t.observation.stack[game] for t in (timestep, before))
                np.testing.assert_array_equal(stack[:-1], earlier[1:])
            np.testing.assert_array_equal(first, before.step_type == LAST)
            before = timestep
        batch.close()
        assert set(starts) == set(range(min_noops, 4))
        assert len(starts) == num_firsts > 30

    def test_full_action_set_has_eighteen_actions(self) -> None:
        restricted = atari("pong", num_envs=1, seed=1)
        full = atari("pong", num_envs=1, seed=1, full_action_set=True)
        assert (restricted.num_actions, full.num_actions) == (6, 18)
        full.reset()
        assert full.step(np.array([17])).step_type[0] == MID
        restricted.close()
        full.close()

    @pytest.mark.parametrize("action", [6, -1])
    def test_an_action_outside_the_set_is_refused(self, action: int) -> None:
        batch = atari("pong", num_envs=2, seed=1)
        batch.reset()
        with pytest.raises(ValueError, match=rf"\[0, {action}\] are not all in \[0, 6\)"):
            batch.step(np.array([0, action]))
        assert (batch.step(np.array([0, 5])).step_type == MID).all()
        batch.close()

    @pytest.mark.parametrize(
        "option",
        [
            {"num_envs": 0},
            {"seed": -1},
            {"seed": 2**31 - 1},
            {"action_repeat": 0},
            {"max_episode_frames": 0},
            {"max_noops": -1},
            {"min_noops": -1},
            {"min_noops": 31},
            {"sticky_actions": 1.0},
            {"sticky_actions": -0.1},
        ],
        ids=str,
    )
    def test_an_impossible_option_is_refused_by_name(self, option: dict[str, Any]) -> None:
        (name,) = option
        with pytest.raises(ValueError, match=name):
            atari("pong", **{"num_envs": 2, "seed": 1, **option})

    def test_an_unknown_game_is_refused(self) -> None:
        with pytest.raises(UnknownGameError, match="did you mean pong"):
            atari("pongg", num_envs=1, seed=1)


def frames_late(num_frames: int, starts: int, **options: Any) -> np.ndarray:
    """For how many of its first frames RIGHT was not played, in each start of 16 Breakouts.

    Once it is played it stays, repeated or not: so the screen afterwards is that of a game without
    sticky actions which was given so many no-ops first. What a frame does is seen in the next.
    """
    late = [[0] * n + [2] * (num_frames + 1 - n) for n in range(num_frames + 1)]
    shown = stacks(play(np.array(late).T, "breakout", seed=1, action_repeat=1, max_noops=0))[-1]
    assert len({stack.tobytes() for stack in shown}) == num_frames + 1
    number = {stack[-1].tobytes(): n for n, stack in enumerate(shown)}
    batch = atari("breakout", num_envs=16, seed=1, action_repeat=1, max_noops=0, **options)
    found = []
    for _ in range(starts):
        batch.reset()
        for _ in range(num_frames + 1):
            timestep = batch.step(np.full(16, 2))
        found += [number[stack[-1].tobytes()] for stack in timestep.observation.stack]
    batch.close()
    return np.array(found)


class TestStickyActions:
    def test_a_quarter_of_the_frames_repeat_the_action_before(self) -> None:
        late = frames_late(4, starts=10, sticky_actions=0.25)
        # Each start draws until RIGHT is played, or its four frames are over.
        repeats, draws = late.sum(), (late + (late < 4)).sum()
        assert repeats / draws == pytest.approx(0.25, abs=0.06)
        assert late.max() >= 2

    def test_there_are_none_unless_asked_for(self) -> None:
        assert (frames_late(4, starts=2) == 0).all()


class TestSeeds:
    def test_the_same_seed_gives_the_same_frames(self) -> None:
        actions = random_actions(40, 2, 6)
        runs = [play(actions, "pong", seed=11, max_episode_frames=60) for _ in range(2)]
        assert (column(runs[0], "step_type") == LAST).any()
        np.testing.assert_array_equal(stacks(runs[0]), stacks(runs[1]))

    def test_another_seed_gives_other_frames(self) -> None:
        actions = random_actions(10, 1, 6)
        one, other = (play(actions, "pong", seed=seed) for seed in (11, 12))
        assert not np.array_equal(stacks(one), stacks(other))

    def test_games_of_one_batch_differ(self) -> None:
        shown = stacks(play(np.ones((15, 2), int), "breakout", seed=11))
        assert not np.array_equal(shown[:, 0], shown[:, 1])

    def test_resets_continue_the_sequence_that_the_seed_fixed(self) -> None:
        runs = []
        for _ in range(2):
            batch = atari("breakout", num_envs=1, seed=11)
            episodes = []
            for _ in range(4):
                batch.reset()
                # Fires the ball: where it goes depends on the no-ops before.
                episodes.append(stacks(batch.step(np.array([1])) for _ in range(15)))
            batch.close()
            runs.append(np.array(episodes))
        np.testing.assert_array_equal(runs[0], runs[1])
        assert not np.array_equal(runs[0][0], runs[0][1])

    def test_a_reset_after_an_end_starts_one_episode_only(self) -> None:
        batch = atari("pong", num_envs=1, seed=11, max_episode_frames=8)
        batch.reset()
        noop = np.zeros(1, int)
        assert [batch.step(noop).step_type[0] for _ in range(2)] == [MID, LAST]
        assert batch.reset().step_type[0] == FIRST
        assert [batch.step(noop).step_type[0] for _ in range(3)] == [MID, LAST, FIRST]
        batch.close()


class TestPictures:
    """Golden hashes: a new emulator, or another way to shrink frames, must not pass unseen."""

    @pytest.mark.parametrize(
        ("game", "digests"),
        [
            ("pong", ["4ca0dd18c12395ca", "dfb5396037a65753", "ec760cb5a1e94bb7"]),
            ("breakout", ["c513b737253b9af9", "0c045ed5c70e359a", "a44e312bd95b9338"]),
        ],
    )
    def test_stacks_after_fixed_actions_are_what_they_always_were(
        self, game: str, digests: list[str]
    ) -> None:
        actions = np.arange(60)[:, np.newaxis] % 4
        timesteps = play(actions, game, seed=7)
        chosen = [timesteps[step].observation.stack for step in (0, 20, 60)]
        assert [hashlib.sha256(stack.tobytes()).hexdigest()[:16] for stack in chosen] == digests

    def test_a_frame_is_the_brighter_of_the_last_two_screens_averaged_over_areas(self) -> None:
        actions = random_actions(40, 1, 4)
        timesteps = play(actions, "breakout", seed=1, max_noops=0)
        bare = ALEInterface()
        bare.setInt("random_seed", 1)
        bare.setFloat("repeat_action_probability", 0.0)
        rom = roms.get_rom_path("breakout")
        assert rom is not None
        bare.loadROM(rom)
        bare.reset_game()
        rows, columns = area_weights(210), area_weights(160)
        for action, timestep in zip(actions[:, 0], timesteps[1:], strict=True):
            screens = []
            for _ in range(4):
                bare.act(bare.getMinimalActionSet()[action])
                screens.append(bare.getScreenGrayscale())
            brightest = np.maximum(screens[2], screens[3])
            expected = rows @ brightest @ columns.T
            shown = timestep.observation.stack[0, -1]
            # Two roundings of the same mean may differ by one.
            assert np.abs(shown - expected).max() <= 1.0


def area_weights(size: int) -> np.ndarray:
    """How much of each of `size` pixels each of 84 covers; rows sum to 1."""
    edges = np.linspace(0, size, 85)
    pixels = np.arange(size)
    covered = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.maximum(covered, 0.0) * 84 / size


@pytest.mark.parametrize("game", reference_scores())
def test_every_game_starts_and_steps(game: str) -> None:
    batch = atari(game, num_envs=1, seed=1)
    assert 3 <= batch.num_actions <= 18
    assert batch.reset().observation.stack.any()
    assert batch.step(np.array([batch.num_actions - 1])).step_type[0] == MID
    batch.close()


def test_a_step_nobody_waits_for_does_not_hold_the_end() -> None:
    batch = atari("pong", num_envs=2, seed=1)
    batch.reset()
    batch.send(np.zeros(2, int))
    batch.close()
