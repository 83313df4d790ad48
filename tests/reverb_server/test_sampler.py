"""Experience on its way: n-step rows, writer, a real Reverb server, sampler."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import reverb

from actors.n_step import NStepStream, Row, item_rows
from actors.observation import FRAME_SHAPE, STACK_SIZE
from reverb_server import sampler, tables
from reverb_server.client import read_counts
from reverb_server.rate_limit import RateLimit
from tests.reverb_server.episodes import (
    Episode,
    layout_of,
    make_streams,
    open_sampler,
    open_writer,
    play,
)

MakeServer = Callable[..., reverb.Server]
Connect = Callable[[reverb.Server], reverb.Client]
FIRST_SOURCE = STACK_SIZE - 1  # row of an item


def expected_items(episodes: list[Episode], n: int, transitions: int) -> Iterator[dict[str, Any]]:
    """The items of a stream, straight from its rows."""
    stream = NStepStream(n, transitions)
    rows: list[Row] = []
    for episode in episodes:
        increments = [stream.step(row) for row in episode.rows]
        increments.append(stream.end(episode.final_frame, terminated=episode.terminated))
        for increment in increments:
            rows += increment.rows
            for item in increment.items:
                yield {
                    name: [getattr(row, name) for row in rows[item]]
                    for name in ("frame", *tables.Step._fields)
                }


def columns_of(batch: sampler.SampledBatch) -> dict[str, np.ndarray]:
    return {"frame": batch.frames, **batch.steps._asdict()}


def sample_all(source: sampler.BatchSampler, num_items: int) -> dict[bytes, dict[str, np.ndarray]]:
    """Samples until every item was seen; they are known by their source frame."""
    seen: dict[bytes, dict[str, np.ndarray]] = {}
    for _ in range(2000):
        batch = source()
        assert batch is not None
        for i, frames in enumerate(batch.frames):
            item = {name: column[i] for name, column in columns_of(batch).items()}
            known = seen.setdefault(frames[FIRST_SOURCE].tobytes(), item)
            for name, value in item.items():
                np.testing.assert_array_equal(value, known[name])
        if len(seen) >= num_items:
            return seen
    raise AssertionError(f"saw {len(seen)} of {num_items} items")


@pytest.mark.parametrize(("n", "transitions"), [(1, 1), (5, 1), (5, 4)])
def test_every_item_of_every_stream_arrives_with_the_values_played(
    n: int, transitions: int, make_server: MakeServer, connect: Connect
) -> None:
    server = make_server(n_step=n, transitions=transitions)
    # Shorter than the window, as long, a little longer, and much longer than it.
    streams = make_streams(3, [1, 2, n, n + 1, 4 * n + 3, 1])
    sizes = {"n_step": n, "transitions": transitions}
    with open_writer(connect(server), num_streams=3, **sizes) as target:
        play(target, streams, n, transitions)
    expected = {
        item["frame"][FIRST_SOURCE].tobytes(): item
        for episodes in streams
        for item in expected_items(episodes, n, transitions)
    }

    seen = sample_all(open_sampler(server, **sizes), len(expected))

    table = read_counts(connect(server), layout_of(n, transitions))
    assert table.size == table.inserts == transitions * len(expected)
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
    rows = item_rows(5, 1)
    assert (batch.frames.dtype, batch.frames.shape) == (np.uint8, (8, rows, *FRAME_SHAPE))
    for column in batch.steps:
        assert (column.dtype, column.shape) == (np.float32, (8, rows))
    assert batch.keys.dtype == np.uint64
    np.testing.assert_array_equal(batch.weights, np.ones(8, np.float32))


def test_returns_none_while_the_table_has_too_little_and_a_batch_once_it_has_enough(
    make_server: MakeServer,
    connect: Connect,
    eventually: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "_WAIT_SECONDS", 0.05)
    warmup = RateLimit(samples_per_insert=1.0, warmup_steps=10, error_buffer=1000.0)
    server = make_server(rate_limit=warmup)
    source = open_sampler(server)
    with open_writer(connect(server)) as target:
        play(target, make_streams(1, [10]), 1)  # the last one waits for rows to come
        assert source() is None
        assert source() is None
        play(target, make_streams(1, [3], seed=1), 1)
    assert eventually(source).keys.shape == (8,)
