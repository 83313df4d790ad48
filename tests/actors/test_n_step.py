"""A game's stream: which rows it gets, and which of them are items."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.n_step import NStepStream, Row, item_rows, shortest_truncated_steps
from actors.observation import FRAME_SHAPE, STACK_SIZE

FRAME = np.zeros(FRAME_SHAPE, np.uint8)


class Episode(NamedTuple):
    num_steps: int
    terminated: bool


def step(number: int) -> Row:
    """Known by its action."""
    return Row(FRAME, action=number, reward=0.0, discount=1.0, epsilon=1.0, greedy=0)


def play(stream: NStepStream, episodes: list[Episode]) -> tuple[list[Row], list[list[Row]]]:
    """All rows of the stream, and the items as they came."""
    rows: list[Row] = []
    items: list[list[Row]] = []
    played = 0
    for episode in episodes:
        increments = [stream.step(step(played + t)) for t in range(episode.num_steps)]
        increments.append(stream.end(FRAME, terminated=episode.terminated))
        played += episode.num_steps
        for increment in increments:
            rows += increment.rows
            items += [rows[item] for item in increment.items]
    return rows, items


def sources(item: list[Row], transitions: int) -> list[int]:
    """The steps that an item's transitions start from."""
    return [row.action for row in item[STACK_SIZE - 1 :] if not row.final][:transitions]


EPISODES = st.lists(st.builds(Episode, st.integers(1, 30), st.booleans()), min_size=1, max_size=5)


@settings(deadline=None, max_examples=100)
@given(n=st.integers(2, 12), transitions=st.integers(1, 6), episodes=EPISODES)
def test_every_step_is_the_source_of_one_transition_in_its_order(
    n: int, transitions: int, episodes: list[Episode]
) -> None:
    rows, items = play(NStepStream(n, transitions), episodes)
    found = [number for item in items for number in sources(item, transitions)]
    assert found == list(range(len(found)))
    assert all(len(item) == item_rows(n, transitions) for item in items)
    # What is still missing is less than one item and its rows to come.
    played = sum(episode.num_steps for episode in episodes)
    assert played - len(found) < item_rows(n, transitions)
    # Three rows before the first step, and one after each truncation.
    truncated = sum(not episode.terminated for episode in episodes)
    assert len(rows) == STACK_SIZE - 1 + played + truncated


def test_an_item_comes_as_soon_as_its_rows_are_there() -> None:
    stream = NStepStream(2, 2)  # items of 3 + 2 + 2 rows
    counts = [len(stream.step(step(t)).items) for t in range(9)]
    assert counts == [0, 0, 0, 1, 0, 1, 0, 1, 0]


def test_rows_say_how_many_of_those_before_are_of_their_episode() -> None:
    rows, _ = play(NStepStream(2, 1), [Episode(5, True), Episode(2, False), Episode(1, True)])
    assert [row.age for row in rows[3:]] == [0, 1, 2, 3, 3, 0, 1, 2, 0]
    assert [row.final for row in rows[3:]] == [0, 0, 0, 0, 0, 0, 0, 1, 0]
    assert not any(row.frame.any() for row in rows[:3])


@given(
    n=st.integers(1, 4),
    transitions=st.integers(1, 8),
    first=st.integers(1, 8),
    data=st.data(),
)
def test_the_last_source_of_an_item_has_a_row_after_it_however_often_episodes_are_cut_off(
    n: int, transitions: int, first: int, data: st.DataObject
) -> None:
    shortest = max(shortest_truncated_steps(n, transitions), 1)
    lengths = data.draw(st.lists(st.integers(shortest, shortest + 3), min_size=20, max_size=20))
    episodes = [Episode(first, True), *(Episode(length, False) for length in lengths)]
    _, items = play(NStepStream(n, transitions), episodes)
    for item in items:
        assert len(sources(item, transitions)) == transitions
        last = max(i for i, row in enumerate(item) if row.action == sources(item, transitions)[-1])
        assert last < len(item) - 1 or item[-1].final


@settings(deadline=None, max_examples=50)
@given(episodes=EPISODES, more=EPISODES)
def test_a_stream_goes_on_from_its_state(episodes: list[Episode], more: list[Episode]) -> None:
    stream, restored = NStepStream(3, 4), NStepStream(3, 4)
    play(stream, episodes)
    stream.step(step(0))
    restored.restore(stream.state())
    for episode in more:
        for _ in range(episode.num_steps):
            expected, found = stream.step(step(1)), restored.step(step(1))
            assert [row[1:] for row in found.rows] == [row[1:] for row in expected.rows]
            assert found.items == expected.items
        end, found = (s.end(FRAME, terminated=episode.terminated) for s in (stream, restored))
        assert found.items == end.items


@pytest.mark.parametrize(("sizes", "named"), [((0, 1), "n=0"), ((1, 0), "transitions=0")])
def test_a_window_and_an_item_have_at_least_one_step(sizes: tuple[int, int], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        NStepStream(*sizes)


def test_an_episode_cannot_end_before_its_first_step() -> None:
    stream = NStepStream(1, 1)
    with pytest.raises(ValueError, match="before its first step"):
        stream.end(FRAME, terminated=True)
    play(stream, [Episode(1, True)])
    with pytest.raises(ValueError, match="before its first step"):
        stream.end(FRAME, terminated=True)
