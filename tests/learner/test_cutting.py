"""Items taken apart: every transition against brute force, and batches that are fair draws."""

from collections import Counter
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.n_step import NStepStream, Row, item_rows, shortest_truncated_steps
from learner.backend import PLAIN, backend_for
from learner.cutting import Cut
from learner.transitions import Transition

GAMMA, STACK = 0.5, 4  # powers of a half are exact
TAKERS = {"host": backend_for("cpu").take_stacks, "device": PLAIN.take_stacks}


class Columns(NamedTuple):
    action: Any
    reward: Any
    discount: Any
    epsilon: Any
    greedy: Any
    age: Any
    final: Any


class Step(NamedTuple):
    """A step of an episode; its frame is filled with `shade`."""

    shade: int
    reward: float
    discount: float


class Episode(NamedTuple):
    steps: list[Step]
    final_shade: int
    terminated: bool


def frame(shade: int) -> np.ndarray:
    return np.full((2, 2), shade, np.uint8)


def items_of(episodes: list[Episode], n: int, transitions: int) -> list[list[Row]]:
    stream = NStepStream(n, transitions)
    black = frame(0)
    rows: list[Row] = []
    items: list[list[Row]] = []
    number = 0
    for episode in episodes:
        increments = []
        for step in episode.steps:
            # Each step is known by its action.
            row = Row(frame(step.shade), number, step.reward, step.discount, 0.5, number % 5)
            increments.append(stream.step(row))
            number += 1
        increments.append(stream.end(frame(episode.final_shade), terminated=episode.terminated))
        for increment in increments:
            rows += [
                r if r.frame.shape == (2, 2) else r._replace(frame=black) for r in increment.rows
            ]
            items += [rows[item] for item in increment.items]
    return items


def arrays_of(items: list[list[Row]]) -> tuple[np.ndarray, Columns]:
    steps = np.array([[row[1:] for row in item] for item in items], np.float32)
    return (
        np.array([[row.frame for row in item] for item in items]),
        Columns(*np.moveaxis(steps, -1, 0)),
    )


def stack_at(episode: Episode, t: int) -> list[int]:
    shades = [*(step.shade for step in episode.steps), episode.final_shade]
    return [shades[k] if k >= 0 else 0 for k in range(t - STACK + 1, t + 1)]


def brute_force(episode: Episode, t: int, n: int) -> tuple[list[int], list[int], float, float]:
    """Both stacks, the n-step return and discount of step t, straight from the episode."""
    stop = min(t + n, len(episode.steps))
    total, carried = 0.0, 1.0
    for step in episode.steps[t:stop]:
        total += carried * step.reward
        carried *= step.discount
    return stack_at(episode, t), stack_at(episode, stop), total, carried


def sums(transition: Transition, i: int) -> tuple[float, float]:
    total, carried = 0.0, 1.0
    for reward, discount in zip(transition.r_t[i], transition.discount_t[i], strict=True):
        total += carried * reward
        carried *= discount
    return total, carried


@st.composite
def episodes(draw: st.DrawFn, least: int) -> Episode:
    length = draw(st.integers(max(least, 1), 25))
    terminated = draw(st.booleans())
    shades = draw(st.lists(st.integers(1, 255), min_size=length + 1, max_size=length + 1))
    rewards = draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=length, max_size=length))
    lost = draw(st.lists(st.sampled_from([False] * 9 + [True]), min_size=length, max_size=length))
    ends = [life or (terminated and t == length - 1) for t, life in enumerate(lost)]
    steps = [
        Step(shade, reward, 0.0 if end else GAMMA)
        for shade, reward, end in zip(shades, rewards, ends, strict=False)
    ]
    return Episode(steps, shades[-1], terminated)


@pytest.mark.parametrize("where", TAKERS)
@settings(deadline=None, max_examples=60)
@given(n=st.integers(1, 8), transitions=st.integers(1, 5), data=st.data())
def test_every_transition_is_what_brute_force_gives_and_comes_once(where, n, transitions, data):
    least = shortest_truncated_steps(n, transitions)
    played = data.draw(st.lists(episodes(least), min_size=1, max_size=4))
    items = items_of(played, n, transitions)
    if not items:
        return
    cut = Cut(n, transitions, batch_size=len(items), stack_size=STACK)
    found = jax.device_get(cut(*arrays_of(items), np.random.default_rng(0), TAKERS[where]))
    number = [(episode, t) for episode in played for t in range(len(episode.steps))]
    assert sorted(found.a_tm1.tolist()) == list(range(len(items) * transitions))
    for i, action in enumerate(found.a_tm1.tolist()):
        episode, t = number[action]
        o_tm1, o_t, total, carried = brute_force(episode, t, _window(items, action, n, transitions))
        assert found.o_tm1[i, :, 0, 0].tolist() == o_tm1
        assert sums(found, i) == (total, carried)
        # What is multiplied by 0 may be anything.
        assert carried == 0.0 or found.o_t[i, :, 0, 0].tolist() == o_t
        assert (found.greedy_tm1[i], found.epsilon[i]) == (action % 5, 0.5)


def _window(items: list[list[Row]], action: int, n: int, transitions: int) -> int:
    """n, or less where a final row among an item's sources leaves the last windows no room."""
    item = items[action // transitions]
    place = action % transitions
    row = [i for i, r in enumerate(item) if i >= STACK - 1 and not r.final][place]
    return min(n, item_rows(n, transitions) - 1 - row)


def test_only_a_final_row_among_the_sources_shortens_a_window():
    steps = [Step(1 + t, 0.0, GAMMA) for t in range(40)]
    whole = items_of([Episode(steps, 99, terminated=True)], 5, 4)
    assert {_window(whole, action, 5, 4) for action in range(4 * len(whole))} == {5}
    cut_off = Episode(steps[:6], 99, terminated=False)
    broken = items_of([cut_off, Episode(steps, 99, terminated=True)], 5, 4)
    assert [_window(broken, action, 5, 4) for action in range(12)] == [5] * 7 + [4] + [5] * 4


def test_a_batch_has_one_transition_of_each_of_its_items_and_each_is_equally_likely():
    n, transitions, batch = 2, 4, 8
    steps = [Step(1, 0.0, GAMMA) for _ in range(80)]
    items = items_of([Episode(steps, 1, terminated=True)], n, transitions)[: 2 * batch]
    cut = Cut(n, transitions, batch, STACK)
    rng = np.random.default_rng(1)
    counts: Counter[int] = Counter()
    rounds = 400
    for _ in range(rounds):
        found = cut(*arrays_of(items), rng, TAKERS["host"])
        per_update = found.a_tm1.reshape(2 * transitions, batch)
        for update, actions in enumerate(per_update):
            first = batch * (update // transitions)
            assert (actions // transitions).tolist() == list(range(first, first + batch))
        counts.update(per_update[0].tolist())
    # Of each item of the first batch every transition is first equally often.
    shares = np.array([counts[action] for action in range(batch * transitions)]) / rounds
    assert np.abs(shares - 1 / transitions).max() < 0.1


def test_host_and_device_put_the_same_stacks_together():
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (30, 5, 5), np.uint8)
    rows = rng.integers(-1, 30, (2, 7, STACK)).astype(np.int32)
    host, device = (jax.device_get(take(frames, *rows)) for take in TAKERS.values())
    assert (rows < 0).any()
    for ours, theirs, wanted in zip(host, device, rows, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(
            ours, np.where(wanted[..., None, None] < 0, 0, frames[wanted])
        )
