"""Experience on its way: n-step rows, writer, a real Reverb server, sampler."""

import itertools
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import reverb
import tensorflow as tf
from reverb.cc import schema_pb2

from actors.n_step import NStepStream, Row
from reverb_server import priorities, sampler, tables, telemetry, writer
from reverb_server.client import read_counts
from reverb_server.params import ParamsPublisher
from reverb_server.rate_limit import RateLimit

MakeServer = Callable[..., reverb.Server]
Connect = Callable[[reverb.Server], reverb.Client]
DTYPES = {
    "o_tm1": np.uint8,
    "o_t": np.uint8,
    "a_tm1": np.int32,
    "r_t": np.float32,
    "discount_t": np.float32,
    "epsilon": np.float32,
    "greedy_tm1": np.int32,
}
HELD = RateLimit(samples_per_insert=1.0, warmup_steps=4, error_buffer=2.0)


class Episode(NamedTuple):
    """What was played, one row per step, and the frame it ended with."""

    rows: list[Row]
    final_frame: np.ndarray
    terminated: bool


def random_episode(rng: np.random.Generator, num_steps: int, terminated: bool) -> Episode:
    def row(last: bool) -> Row:
        # A lost life in between: discount 0 without an end.
        lost = rng.random() < 0.2 or (last and terminated)
        return Row(
            frame=rng.integers(1, 256, (84, 84), np.uint8),
            action=int(rng.integers(18)),
            reward=float(rng.integers(-1, 2)),
            discount=0.0 if lost else 0.99,
            epsilon=float(np.float32(rng.random())),
            greedy=int(rng.integers(18)),
        )

    rows = [row(last=t == num_steps - 1) for t in range(num_steps)]
    return Episode(rows, rng.integers(1, 256, (84, 84), np.uint8), terminated)


def stack_at(episode: Episode, t: int) -> np.ndarray:
    frames = [row.frame for row in episode.rows] + [episode.final_frame]
    black = np.zeros((84, 84), np.uint8)
    return np.stack([frames[i] if i >= 0 else black for i in range(t - 3, t + 1)])


def expected_items(episode: Episode, n: int) -> Iterator[dict[str, Any]]:
    """The n-step transitions of an episode, straight from their definition."""
    length = len(episode.rows)
    beyond = 0.0 if episode.terminated else 1.0
    for t, row in enumerate(episode.rows):
        window = [episode.rows[t + k] if t + k < length else None for k in range(n)]
        yield {
            "o_tm1": stack_at(episode, t),
            "o_t": stack_at(episode, min(t + n, length)),
            "a_tm1": row.action,
            "r_t": [0.0 if step is None else step.reward for step in window],
            "discount_t": [beyond if step is None else step.discount for step in window],
            "epsilon": row.epsilon,
            "greedy_tm1": row.greedy,
        }


def make_streams(num_streams: int, lengths: list[int], seed: int = 0) -> list[list[Episode]]:
    rng = np.random.default_rng(seed)
    return [
        [random_episode(rng, length, terminated=bool(i % 2)) for i, length in enumerate(lengths)]
        for _ in range(num_streams)
    ]


def play(target: writer.ExperienceWriter, streams: list[list[Episode]], n: int) -> int:
    """Writes the streams step by step, taking turns as an actor does; returns rows appended."""
    rows_appended = 0

    def one(index: int, episodes: list[Episode]) -> Iterator[None]:
        nonlocal rows_appended
        stream = NStepStream(n)
        for episode in episodes:
            for row in episode.rows:
                increment = stream.step(row)
                target.write(index, increment.rows, increment.items)
                rows_appended += len(increment.rows)
                yield
            increment = stream.end(episode.final_frame, terminated=episode.terminated)
            target.write(index, increment.rows, increment.items)
            rows_appended += len(increment.rows)

    for _ in itertools.zip_longest(*(one(i, episodes) for i, episodes in enumerate(streams))):
        pass
    return rows_appended


def open_writer(client: reverb.Client, **options: Any) -> writer.ExperienceWriter:
    defaults: dict[str, Any] = {"num_streams": 1, "n_step": 1, "should_stop": lambda: False}
    return writer.ExperienceWriter(client, **defaults | options)


def open_sampler(server: reverb.Server, **options: Any) -> sampler.BatchSampler:
    defaults: dict[str, Any] = {
        "n_step": 1,
        "batch_size": 8,
        "in_flight_batches": 2,
        "prioritization": None,
    }
    return sampler.BatchSampler(f"localhost:{server.port}", **defaults | options)


def sample_all(source: sampler.BatchSampler, num_items: int) -> dict[bytes, dict[str, np.ndarray]]:
    """Samples until every item was seen; they are known by their source frame."""
    seen: dict[bytes, dict[str, np.ndarray]] = {}
    for _ in range(2000):
        batch = source()
        assert batch is not None
        for i, stack in enumerate(batch.columns["o_tm1"]):
            item = {name: column[i] for name, column in batch.columns.items()}
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
            np.testing.assert_array_equal(seen[key][name], np.asarray(value, DTYPES[name]), name)


def test_a_batch_has_the_types_and_shapes_the_learner_expects(
    make_server: MakeServer, connect: Connect
) -> None:
    server = make_server(n_step=5)
    with open_writer(connect(server), n_step=5) as target:
        play(target, make_streams(1, [20]), 5)

    batch = open_sampler(server, n_step=5)()

    assert batch is not None
    assert {name: column.dtype for name, column in batch.columns.items()} == DTYPES
    assert {name: column.shape for name, column in batch.columns.items()} == {
        "o_tm1": (8, 4, 84, 84),
        "o_t": (8, 4, 84, 84),
        "a_tm1": (8,),
        "r_t": (8, 5),
        "discount_t": (8, 5),
        "epsilon": (8,),
        "greedy_tm1": (8,),
    }
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


def stored_frame_rows(checkpoint: pathlib.Path) -> list[tuple[int, int]]:
    """Key and number of rows of every chunk of frames in a checkpoint."""
    records = tf.data.TFRecordDataset(str(checkpoint / "chunks.tfrecord"), "ZLIB")
    chunks = [schema_pb2.ChunkData.FromString(record) for record in records.as_numpy_iterator()]
    return [
        (chunk.chunk_key, tensor.tensor_shape.dim[0].size)
        for chunk in chunks
        for tensor in chunk.data.tensors
        if tensor.dtype == tf.uint8.as_datatype_enum
    ]


@pytest.mark.parametrize("n", [1, 5])
def test_the_server_holds_each_frame_once(
    n: int, make_server: MakeServer, connect: Connect
) -> None:
    client = connect(make_server(n_step=n))
    with open_writer(client, num_streams=2, n_step=n) as target:
        rows_appended = play(target, make_streams(2, [30, 30]), n)

    stored = stored_frame_rows(pathlib.Path(client.checkpoint()))

    assert read_counts(client).size == 120
    # Each played frame, at most the padding beside it: not the eight of every item.
    assert 120 <= sum(dict(stored).values()) <= rows_appended
    # Now and then Reverb sends a chunk again that it had dropped from its list of sent ones.
    assert sum(rows for _, rows in stored) <= 1.5 * rows_appended


def test_an_actor_with_another_window_than_the_table_is_refused(
    make_server: MakeServer, connect: Connect
) -> None:
    client = connect(make_server(n_step=3))
    with pytest.raises(writer.SignatureError, match="n_step=5"):
        open_writer(client, n_step=5)


class TestHeldBack:
    """The limiter allows warm-up plus two items; nobody samples."""

    EPISODE = 40

    def test_write_waits_no_longer_than_its_limit_and_says_so(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        target = open_writer(
            connect(make_server(rate_limit=HELD)), max_pending_items=2, timeout_seconds=0.1
        )
        with target, pytest.raises(writer.WriteTimeoutError, match=r"no items for 0\.\d s"):
            play(target, make_streams(1, [self.EPISODE]), 1)
        assert target.waited_seconds < 0.1  # the wait that failed is not one that was overcome

    def test_write_returns_when_told_to_stop_and_counts_what_it_waited(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        asked: list[float] = []

        def should_stop() -> bool:
            asked.append(time.monotonic())
            return len(asked) >= 3

        client = connect(make_server(rate_limit=HELD))
        started = time.monotonic()
        with open_writer(
            client, max_pending_items=2, should_stop=should_stop, timeout_seconds=30.0
        ) as target:
            increments = NStepStream(1)
            rows = make_streams(1, [self.EPISODE])[0][0].rows
            for row in rows:
                target.write(0, *increments.step(row))
                if asked:
                    break
            waited = target.waited_seconds
        assert len(asked) == 3
        assert 0.0 < asked[-1] - asked[0] <= waited <= time.monotonic() - started
        assert read_counts(client).size == 6

    def test_writing_goes_on_as_soon_as_someone_samples(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        server = make_server(rate_limit=HELD)
        held: list[bool] = []
        source = open_sampler(server, batch_size=2, in_flight_batches=1)

        def sample_instead_of_stopping() -> bool:
            held.append(source() is not None)
            return False

        with open_writer(
            connect(server), max_pending_items=2, should_stop=sample_instead_of_stopping
        ) as target:
            play(target, make_streams(1, [14]), 1)
        assert any(held)
        assert read_counts(connect(server)).size > 6

    def test_neither_telemetry_nor_parameters_wait_for_a_full_replay(
        self, make_server: MakeServer, connect: Connect, eventually: Callable[..., Any]
    ) -> None:
        server = make_server(rate_limit=HELD)
        client = connect(server)
        with open_writer(client, max_pending_items=2, timeout_seconds=0.1) as target:
            with pytest.raises(writer.WriteTimeoutError):
                play(target, make_streams(1, [self.EPISODE]), 1)
            report = telemetry.TelemetryWriter(client, "actor/0")
            report({"held": True})
            report.close(timeout_seconds=30.0)
            publisher = ParamsPublisher(client)
            publisher.publish(lambda: np.zeros(3, np.float32), version=7, steps=1, finished=False)
            publisher.close(timeout_seconds=30.0)

            assert [row["held"] for row in telemetry.TelemetryReader(client).drain()] == [True]
            assert client.server_info(5)[tables.PARAMS].current_size == 1
            assert read_counts(client).size == 6


def test_leaving_the_writer_is_quick_when_the_server_is_gone(
    make_server: MakeServer, connect: Connect
) -> None:
    server = make_server()
    with open_writer(connect(server), num_streams=4) as target:
        play(target, make_streams(4, [3]), 1)
        server.stop()
        play(target, make_streams(4, [3], seed=1), 1)
        started = time.monotonic()
    # One shared second, not one per stream; the bound is far from both.
    assert time.monotonic() - started < 3.0


def test_a_writer_goes_on_when_the_server_is_back_on_its_port(
    make_server: MakeServer, connect: Connect, eventually: Callable[..., Any]
) -> None:
    server = make_server()
    with open_writer(connect(server), max_pending_items=0, timeout_seconds=60.0) as target:
        play(target, make_streams(1, [5]), 1)
        server.stop()
        revived = make_server(port=server.port)
        play(target, make_streams(1, [5], seed=1), 1)
        assert read_counts(connect(revived), timeout_seconds=30).size >= 5


class TestSampler:
    def test_returns_none_while_the_table_has_too_little_and_a_batch_once_it_has_enough(
        self, make_server: MakeServer, connect: Connect, eventually: Callable[..., Any]
    ) -> None:
        warmup = RateLimit(samples_per_insert=1.0, warmup_steps=10, error_buffer=1000.0)
        server = make_server(rate_limit=warmup)
        source = open_sampler(server, timeout_seconds=0.05)
        with open_writer(connect(server)) as target:
            play(target, make_streams(1, [9]), 1)
            assert source() is None
            assert source() is None
            play(target, make_streams(1, [1], seed=1), 1)
        assert eventually(source).columns["a_tm1"].shape == (8,)

    def test_weights_correct_for_the_priorities_items_were_drawn_with(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        scheme = tables.Prioritization(alpha=0.5, beta=0.4)
        server = make_server(prioritization=scheme)
        with open_writer(connect(server)) as target:
            play(target, make_streams(1, [4]), 1)
        keys = item_keys(server, 4)
        errors = np.array([1.0, 4.0, 9.0, 16.0], np.float32)
        priorities.update_priorities(connect(server), keys, -errors)

        source = open_sampler(server, prioritization=scheme, batch_size=64)
        batch = source()

        assert batch is not None
        assert batch.weights.dtype == np.float32
        # P(i) = p_i^0.5 / sum p^0.5 = (1, 2, 3, 4) / 10; w_i = (4 P(i))^-0.4 / max.
        by_key = dict(zip(keys.tolist(), np.array([0.1, 0.2, 0.3, 0.4]), strict=True))
        raw = np.array([(4 * by_key[key]) ** -0.4 for key in batch.keys.tolist()])
        np.testing.assert_allclose(batch.weights, raw / raw.max(), rtol=1e-4)
        assert len(set(batch.keys.tolist())) > 1

    def test_new_priorities_decide_what_is_sampled(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        scheme = tables.Prioritization(alpha=1.0, beta=0.4)
        server = make_server(prioritization=scheme)
        with open_writer(connect(server)) as target:
            play(target, make_streams(1, [16]), 1)
        keys = item_keys(server, 16)
        errors = np.zeros(16, np.float32)
        errors[5] = -1e6
        updater = priorities.PriorityUpdater(connect(server))
        updater(keys, errors)
        updater.close(timeout_seconds=30.0)

        batch = open_sampler(server, prioritization=scheme, batch_size=32)()

        assert batch is not None
        assert set(batch.keys.tolist()) == {int(keys[5])}

    def test_the_learner_is_not_held_by_priorities_for_a_server_that_is_gone(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        server = make_server(prioritization=tables.Prioritization(0.6, 0.4))
        updater = priorities.PriorityUpdater(connect(server), max_waiting=2)
        server.stop()
        for _ in range(10):
            updater(np.array([1], np.uint64), np.array([0.5]))
        # Two wait in line, and one may be on its way.
        assert 7 <= updater.dropped_updates <= 8
        updater.close(timeout_seconds=0.1)

    def test_a_failed_priority_update_surfaces(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        updater = priorities.PriorityUpdater(connect(make_server()))
        updater(np.array([1, 2], np.uint64), np.array([0.5]))
        with pytest.raises(ValueError, match="shorter"):
            updater.close(timeout_seconds=30.0)


def item_keys(server: reverb.Server, num_items: int) -> np.ndarray:
    """The keys of all items of the replay table, in no order."""
    source = open_sampler(server, prioritization=None, batch_size=num_items)
    keys: set[int] = set()
    for _ in range(1000):
        batch = source()
        assert batch is not None
        keys |= set(batch.keys.tolist())
        if len(keys) == num_items:
            return np.array(sorted(keys), np.uint64)
    raise AssertionError(f"saw {len(keys)} of {num_items} items")
