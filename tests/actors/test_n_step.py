"""n-step windows: every transition rebuilt from rows and items, against brute force."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.n_step import Increment, Item, NStepStream, Row, rows_reached
from actors.observation import FRAME_SHAPE, STACK_SIZE

GAMMA = 0.9


class Episode(NamedTuple):
    """T steps; frame t is filled with `first_shade + t`."""

    rewards: list[float]  # [T]
    lost_lives: list[bool]  # [T]
    terminated: bool
    first_shade: int

    @property
    def num_steps(self) -> int:
        return len(self.rewards)

    def frame(self, t: int) -> np.ndarray:
        return np.full(FRAME_SHAPE, self.first_shade + t if t >= 0 else 0, np.uint8)

    def stack(self, t: int) -> np.ndarray:
        return np.array([self.frame(k) for k in range(t - STACK_SIZE + 1, t + 1)])

    def discount(self, t: int) -> float:
        ends = self.lost_lives[t] or (self.terminated and t == self.num_steps - 1)
        return 0.0 if ends else GAMMA


class Transition(NamedTuple):
    """What the learner computes with."""

    o_tm1: np.ndarray
    o_t: np.ndarray
    action: int
    epsilon: float
    greedy: int
    n_step_return: float
    n_step_discount: float


def played_row(episode: Episode, t: int) -> Row:
    return Row(
        frame=episode.frame(t),
        action=t % 7,
        reward=episode.rewards[t],
        discount=episode.discount(t),
        epsilon=1.0 / (t + 1),
        greedy=t % 5,
    )


def increments(stream: NStepStream, episode: Episode) -> list[Increment]:
    steps = [stream.step(played_row(episode, t)) for t in range(episode.num_steps)]
    return [
        *steps,
        stream.end(episode.frame(episode.num_steps), terminated=episode.terminated),
    ]


def rebuilt(rows: list[Row], item: Item, n: int) -> Transition:
    """As replay does, when `rows` are all there are so far."""
    window = rows[item.steps]
    # A slice that reaches beyond what has been written is short.
    assert len(window) == n
    assert len(rows[item.o_tm1]) == len(rows[item.o_t]) == STACK_SIZE
    n_step_return, n_step_discount = 0.0, 1.0
    for row in window:
        n_step_return += n_step_discount * row.reward
        n_step_discount *= row.discount
    return Transition(
        o_tm1=np.array([row.frame for row in rows[item.o_tm1]]),
        o_t=np.array([row.frame for row in rows[item.o_t]]),
        action=window[0].action,
        epsilon=window[0].epsilon,
        greedy=window[0].greedy,
        n_step_return=n_step_return,
        n_step_discount=n_step_discount,
    )


def brute_force(episode: Episode, t: int, n: int) -> Transition:
    """The n-step transition from step t, straight from the episode."""
    stop = min(t + n, episode.num_steps)
    discounts = [episode.discount(k) for k in range(t, stop)]
    terms = [np.prod(discounts[:k], initial=1.0) * episode.rewards[t + k] for k in range(stop - t)]
    return Transition(
        o_tm1=episode.stack(t),
        o_t=episode.stack(stop),
        action=t % 7,
        epsilon=1.0 / (t + 1),
        greedy=t % 5,
        n_step_return=float(sum(terms)),
        n_step_discount=float(np.prod(discounts)),
    )


def assert_same(actual: Transition, expected: Transition) -> None:
    np.testing.assert_array_equal(actual.o_tm1, expected.o_tm1)
    np.testing.assert_array_equal(actual.o_t, expected.o_t)
    assert actual[2:5] == expected[2:5]
    assert actual[5:] == pytest.approx(expected[5:])


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    num_steps = draw(st.integers(1, 30))
    rewards = st.sampled_from([-1.0, 0.0, 1.0])
    lost_lives = st.sampled_from([False] * 9 + [True])
    return Episode(
        rewards=draw(st.lists(rewards, min_size=num_steps, max_size=num_steps)),
        lost_lives=draw(st.lists(lost_lives, min_size=num_steps, max_size=num_steps)),
        terminated=draw(st.booleans()),
        first_shade=draw(st.integers(1, 200)),
    )


@settings(deadline=None, max_examples=150)
@given(n=st.integers(1, 12), played=st.lists(episodes(), min_size=1, max_size=3))
def test_every_transition_is_what_brute_force_gives(n: int, played: list[Episode]) -> None:
    stream = NStepStream(n)
    rows: list[Row] = []  # one stream: episodes follow each other without a break
    for episode in played:
        transitions = []
        for increment in increments(stream, episode):
            rows += increment.rows
            del rows[: -rows_reached(n)]  # what lies further back is never asked for
            transitions += [rebuilt(rows, item, n) for item in increment.items]
        assert len(transitions) == episode.num_steps
        for t, transition in enumerate(transitions):
            assert_same(transition, brute_force(episode, t, n))


def episode_of(num_steps: int, *, terminated: bool) -> Episode:
    return Episode([1.0] * num_steps, [False] * num_steps, terminated, first_shade=10)


def test_an_item_comes_as_soon_as_its_bootstrap_frame_is_there() -> None:
    *steps, end = increments(NStepStream(2), episode_of(4, terminated=False))
    whole = Item(o_tm1=slice(-6, -2), o_t=slice(-4, None), steps=slice(-3, -1))
    assert [step.items for step in steps] == [[], [], [whole], [whole]]
    tail = Item(o_tm1=slice(-5, -1), o_t=slice(-4, None), steps=slice(-2, None))
    assert end.items == [whole, tail]


def test_the_first_step_brings_three_zero_frames_and_the_others_one_row_each() -> None:
    *steps, _ = increments(NStepStream(5), episode_of(3, terminated=False))
    assert [len(step.rows) for step in steps] == [4, 1, 1]
    assert not any(row.frame.any() for row in steps[0].rows[:3])


@pytest.mark.parametrize(("terminated", "discount"), [(True, 0.0), (False, GAMMA**2)])
def test_an_episode_shorter_than_the_window_ends_in_short_tails(
    terminated: bool, discount: float
) -> None:
    episode = episode_of(2, terminated=terminated)
    parts = increments(NStepStream(5), episode)
    rows = [row for part in parts for row in part.rows]
    assert [len(part.items) for part in parts] == [0, 0, 2]
    transition = rebuilt(rows, parts[-1].items[0], 5)
    assert transition.n_step_return == pytest.approx(1.0 + GAMMA)
    assert transition.n_step_discount == pytest.approx(discount)
    np.testing.assert_array_equal(transition.o_t, episode.stack(2))


@pytest.mark.parametrize(("terminated", "discount"), [(True, 0.0), (False, 1.0)])
def test_rows_after_the_end_have_no_reward_and_a_neutral_or_zero_discount(
    terminated: bool, discount: float
) -> None:
    end = increments(NStepStream(4), episode_of(6, terminated=terminated))[-1]
    assert len(end.rows) == 3
    assert {(row.reward, row.discount) for row in end.rows} == {(0.0, discount)}


def test_every_episode_is_padded_and_ended_alike() -> None:
    stream = NStepStream(1)
    first, second = (increments(stream, episode_of(2, terminated=True)) for _ in range(2))
    assert [part.items for part in first] == [part.items for part in second]
    assert [len(part.rows) for part in first] == [len(part.rows) for part in second]


def test_a_window_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="n=0"):
        NStepStream(0)


def test_an_episode_cannot_end_before_its_first_step() -> None:
    stream = NStepStream(1)
    with pytest.raises(ValueError, match="before its first step"):
        stream.end(np.zeros(FRAME_SHAPE, np.uint8), terminated=True)
    increments(stream, episode_of(1, terminated=True))
    with pytest.raises(ValueError, match="before its first step"):
        stream.end(np.zeros(FRAME_SHAPE, np.uint8), terminated=True)
