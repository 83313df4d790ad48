"""Experience on its way: n-step rows, writer, a real Reverb server, sampler."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import reverb

from actors.observation import FRAME_SHAPE, OBSERVATION_SHAPE
from reverb_server import sampler, tables
from reverb_server.client import read_counts
from reverb_server.rate_limit import RateLimit
from tests.reverb_server.episodes import Episode, make_streams, open_sampler, open_writer, play

MakeServer = Callable[..., reverb.Server]
Connect = Callable[[reverb.Server], reverb.Client]


def stack_at(episode: Episode, t: int) -> np.ndarray:
    frames = [row.frame for row in episode.rows] + [episode.final_frame]
    black = np.zeros(FRAME_SHAPE, np.uint8)
    return np.stack([frames[i] if i >= 0 else black for i in range(t - 3, t + 1)])


def expected_items(episode: Episode, n: int) -> Iterator[dict[str, Any]]:
    """The n-step items of an episode, straight from their definition."""
    length = len(episode.rows)
    filler = tables.Step(
        action=0, reward=0.0, discount=0.0 if episode.terminated else 1.0, epsilon=1.0, greedy=0
    )
    for t in range(length):
        window = [episode.rows[t + k] if t + k < length else filler for k in range(n)]
        yield {
            "o_tm1": stack_at(episode, t),
            "o_t": stack_at(episode, min(t + n, length)),
            **{name: [getattr(row, name) for row in window] for name in tables.Step._fields},
        }


def columns_of(batch: sampler.SampledBatch) -> dict[str, np.ndarray]:
    return {"o_tm1": batch.o_tm1, "o_t": batch.o_t, **batch.steps._asdict()}


def sample_all(source: sampler.BatchSampler, num_items: int) -> dict[bytes, dict[str, np.ndarray]]:
    """Samples until every item was seen; they are known by their source frame."""
    seen: dict[bytes, dict[str, np.ndarray]] = {}
    for _ in range(2000):
        batch = source()
        assert batch is not None
        for i, stack in enumerate(batch.o_tm1):
            item = {name: column[i] for name, column in columns_of(batch).items()}
            known = seen.setdefault(stack[-1].tobytes(), item)
            for name, value in item.items():
                np.testing.assert_array_equal(value, known[name])
        if len(seen) >= num_items:
            return seen
    raise AssertionError(f"saw {len(seen)} of {num_items} items")


@pytest.mark.parametrize("n", [1, 5])
def test_every_step_of_every_stream_arrives_as_one_item_with_the_values_played(
    n: int, make_server: MakeServer, connect: Connect
) -> None:
    server = make_server(n_step=n)
    # Shorter than the window, as long, a little longer, and much longer than it.
    streams = make_streams(3, [1, 2, n, n + 1, 4 * n + 3, 1])
    with open_writer(connect(server), num_streams=3, n_step=n) as target:
        play(target, streams, n)
    expected = {
        item["o_tm1"][-1].tobytes(): item
        for episode in itertools.chain(*streams)
        for item in expected_items(episode, n)
    }

    seen = sample_all(open_sampler(server, n_step=n), len(expected))

    table = read_counts(connect(server))
    assert table.size == table.inserts == len(expected)
    assert seen.keys() == expected.keys()
    for key, item in expected.items():
        for name, value in item.items():
            expected_value = np.asarray(value, seen[key][name].dtype)
            np.testing.assert_array_equal(seen[key][name], expected_value, name)


def test_a_batch_has_the_types_and_shapes_of_the_layout(
    make_server: MakeServer, connect: Connect
) -> None:
    server = make_server(n_step=5)
    with open_writer(connect(server), n_step=5) as target:
        play(target, make_streams(1, [20]), 5)

    batch = open_sampler(server, n_step=5)()

    assert batch is not None
    for stack in (batch.o_tm1, batch.o_t):
        assert (stack.dtype, stack.shape) == (np.uint8, (8, *OBSERVATION_SHAPE))
    for column in batch.steps:
        assert (column.dtype, column.shape) == (np.float32, (8, 5))
    assert batch.keys.dtype == np.uint64
    np.testing.assert_array_equal(batch.weights, np.ones(8, np.float32))


@pytest.mark.parametrize("n", [1, 5])
def test_the_first_item_of_an_episode_shows_black_before_its_first_frame(
    n: int, make_server: MakeServer, connect: Connect
) -> None:
    server = make_server(n_step=n)
    streams = make_streams(1, [6, 6, 6])
    with open_writer(connect(server), n_step=n) as target:
        play(target, streams, n)

    seen = sample_all(open_sampler(server, n_step=n), 18)

    for episode in streams[0]:
        first = seen[episode.rows[0].frame.tobytes()]["o_tm1"]
        assert not first[:3].any()
        np.testing.assert_array_equal(first[3], episode.rows[0].frame)


def test_returns_none_while_the_table_has_too_little_and_a_batch_once_it_has_enough(
    make_server: MakeServer, connect: Connect, eventually: Callable[..., Any]
) -> None:
    warmup = RateLimit(samples_per_insert=1.0, warmup_steps=10, error_buffer=1000.0)
    server = make_server(rate_limit=warmup)
    source = open_sampler(server, timeout_seconds=0.05)
    with open_writer(connect(server)) as target:
        play(target, make_streams(1, [9]), 1)
        assert source() is None
        assert source() is None
        play(target, make_streams(1, [1], seed=1), 1)
    assert eventually(source).keys.shape == (8,)
