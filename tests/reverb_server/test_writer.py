"""Writing experience: what the server holds, and that nothing waits without bound."""

import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reverb
import tensorflow as tf
from reverb.cc import schema_pb2

from actors.n_step import NStepStream
from reverb_server import tables, telemetry, writer
from reverb_server.client import read_counts
from reverb_server.params import ParamsPublisher
from reverb_server.rate_limit import RateLimit
from tests.reverb_server.episodes import SINGLE, make_streams, open_sampler, open_writer, play

MakeServer = Callable[..., reverb.Server]
Connect = Callable[[reverb.Server], reverb.Client]
HELD = RateLimit(samples_per_insert=1.0, warmup_steps=4, error_buffer=2.0)


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

    # Each played frame once, however many items show it, but for those still waited for.
    assert read_counts(client, SINGLE).size == 2 * (60 - max(n, 2))
    assert 120 <= sum(dict(stored).values()) <= rows_appended
    # Now and then Reverb sends a chunk again that it had dropped from its list of sent ones.
    assert sum(rows for _, rows in stored) <= 1.5 * rows_appended


def test_once_settled_the_server_has_counted_all_that_was_written(
    make_server: MakeServer, connect: Connect
) -> None:
    client = connect(make_server(n_step=1))
    with open_writer(client, num_streams=2, n_step=1) as target:
        play(target, make_streams(2, [33, 33]), 1)
        target.settle()
        counted = read_counts(client, SINGLE).inserts
    assert counted == read_counts(client, SINGLE).inserts == 2 * (66 - 2)


def test_an_actor_with_another_window_than_the_table_is_refused(
    make_server: MakeServer, connect: Connect
) -> None:
    client = connect(make_server(n_step=3))
    with pytest.raises(writer.SignatureError, match="items of 9 rows"):
        open_writer(client, n_step=5)


class TestHeldBack:
    """The limiter allows warm-up plus two items; nobody samples."""

    EPISODE = 40

    @pytest.fixture(autouse=True)
    def two_items_may_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writer, "_PENDING_STEPS", 2)

    def test_write_waits_no_longer_than_its_limit_and_says_so(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        target = open_writer(connect(make_server(rate_limit=HELD)), timeout_seconds=0.1)
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
        with open_writer(client, should_stop=should_stop, timeout_seconds=30.0) as target:
            increments = NStepStream(1, 1)
            rows = make_streams(1, [self.EPISODE])[0][0].rows
            for row in rows:
                target.write(0, *increments.step(row))
                if asked:
                    break
            waited = target.waited_seconds
        assert len(asked) == 3
        assert 0.0 < asked[-1] - asked[0] <= waited <= time.monotonic() - started
        assert read_counts(client, SINGLE).size == 6

    def test_writing_goes_on_as_soon_as_someone_samples(
        self, make_server: MakeServer, connect: Connect
    ) -> None:
        server = make_server(rate_limit=HELD)
        held: list[bool] = []
        source = open_sampler(server, batch_size=2)

        def sample_instead_of_stopping() -> bool:
            held.append(source() is not None)
            return False

        with open_writer(connect(server), should_stop=sample_instead_of_stopping) as target:
            play(target, make_streams(1, [14]), 1)
        assert any(held)
        assert read_counts(connect(server), SINGLE).size > 6

    def test_neither_telemetry_nor_parameters_wait_for_a_full_replay(
        self, make_server: MakeServer, connect: Connect, eventually: Callable[..., Any]
    ) -> None:
        server = make_server(rate_limit=HELD)
        client = connect(server)
        with open_writer(client, timeout_seconds=0.1) as target:
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
            assert read_counts(client, SINGLE).size == 6


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
    make_server: MakeServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PENDING_STEPS", 0)
    server = make_server()
    with open_writer(connect(server), timeout_seconds=60.0) as target:
        play(target, make_streams(1, [5]), 1)
        server.stop()
        revived = make_server(port=server.port)
        play(target, make_streams(1, [6], seed=1), 1)
        assert read_counts(connect(revived), SINGLE, timeout_seconds=30).size >= 5
