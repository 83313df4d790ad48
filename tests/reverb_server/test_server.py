"""The replay role: checkpoints, what it restores, what it reports, whose port it takes."""

import logging
import os
import pathlib
import resource
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import portpicker
import pytest
import reverb

from actors.n_step import NStepStream, Row
from actors.observation import FRAME_SHAPE, STACK_SIZE
from reverb_server import port, server, tables, writer
from reverb_server.client import TableCounts, read_counts
from reverb_server.rate_limit import RateLimit
from tests.reverb_server.episodes import SINGLE, layout_of

Tables = Callable[..., list[reverb.Table]]
Script = Sequence[Callable[[reverb.Client], None] | None]
PERIOD_SECONDS = server._ASK_SECONDS
LIMIT = RateLimit(samples_per_insert=1.0, warmup_steps=2, error_buffer=1e6)


def insert(client: reverb.Client, num_items: int) -> None:
    """Inserts one-step items whose rewards count 0, 1, 2 ..."""
    frame = np.zeros(FRAME_SHAPE, np.uint8)
    stream = NStepStream(1, 1)
    with writer.ExperienceWriter(
        client, layout_of(1), num_streams=1, should_stop=lambda: False
    ) as target:
        for i in range(num_items + 2):  # the last two wait for rows to come
            row = Row(frame, action=i, reward=float(i), discount=1.0, epsilon=1.0, greedy=0)
            target.write(0, *stream.step(row))


def nothing(client: reverb.Client) -> None:
    """A report period in which nothing happens."""


def run(
    make_tables: Tables,
    directory: pathlib.Path,
    script: Script,
    *,
    checkpoint_seconds: float = 1e9,
    report_seconds: float = PERIOD_SECONDS,
    heard: list[Any] | None = None,
    rows: list[dict[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """Serves while the script lasts, one entry per period; returns the reports."""
    number = portpicker.pick_unused_port()
    entries, now = iter(script), [0.0]
    rows = [] if rows is None else rows
    heard = [] if heard is None else heard

    def wait_for_stop(seconds: float) -> bool:
        assert seconds == PERIOD_SECONDS
        now[0] += seconds
        entry = next(entries, None)
        if entry is not None:
            entry(reverb.Client(f"localhost:{number}"))
        return entry is None

    server.serve(
        make_tables(rate_limit=LIMIT),
        SINGLE,
        port=number,
        checkpoint_directory=directory,
        checkpoint_seconds=checkpoint_seconds,
        report_seconds=report_seconds,
        report=rows.append,
        wait_for_stop=wait_for_stop,
        on_answer=heard.append,
        on_save=lambda: heard.append("saves"),
        clock=lambda: now[0],
    )
    return rows


def size_after_restart(make_tables: Tables, directory: pathlib.Path) -> int:
    """What a new server finds in the folder."""
    return run(make_tables, directory, [nothing])[0]["size"]


@pytest.fixture
def file_size_limit() -> Iterator[Callable[[int], None]]:
    """Stands in for a full disk: the kernel refuses to write beyond so many bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_stopped_server_comes_back_with_its_items_and_counters(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    def sample_some(client: reverb.Client) -> None:
        assert len(list(client.sample(tables.REPLAY, 4, emit_timesteps=False))) == 4

    directory = tmp_path / "replay"
    run(make_tables, directory, [lambda client: insert(client, 12), sample_some])
    found: dict[str, Any] = {}

    def look(client: reverb.Client) -> None:
        found["counts"] = read_counts(client, SINGLE)
        samples = client.sample(
            tables.REPLAY, 500, emit_timesteps=False, unpack_as_table_signature=True
        )
        steps = (tables.unpack_steps(tables.Item(**sample.data).steps) for sample in samples)
        found["rewards"] = {float(step.reward[STACK_SIZE - 1]) for step in steps}

    run(make_tables, directory, [look])
    assert found["counts"] == TableCounts(inserts=12, samples=4, size=12)
    assert found["rewards"] == {float(i) for i in range(12)}


def test_each_period_reports_size_and_memory_and_the_last_the_checkpoint(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    rows = run(make_tables, tmp_path, [nothing, lambda client: insert(client, 5)])
    assert [row["size"] for row in rows] == [0, 5, 5]
    assert [row["inserts"] for row in rows] == [0, 5, 5]
    assert all(row["bytes"] > 2**20 for row in rows)
    assert ["checkpoint_seconds" in row for row in rows] == [False, False, True]


def test_a_server_says_that_it_answers_between_rare_reports_and_when_it_will_not(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    heard: list[Any] = []
    script = [nothing, lambda client: insert(client, 5), nothing, nothing]
    rows = run(
        make_tables,
        tmp_path,
        script,
        report_seconds=100 * PERIOD_SECONDS,
        checkpoint_seconds=3 * PERIOD_SECONDS,
        heard=heard,
    )
    assert heard == [0, 5, 5, "saves", 5]
    assert len(rows) == 2  # with the checkpoint, and at the end


def test_a_server_that_does_not_answer_is_not_said_to(
    make_tables: Tables, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []

    def fall_silent(client: reverb.Client) -> None:
        def no_answer(client: reverb.Client, layout: tables.ItemLayout) -> TableCounts:
            raise RuntimeError("deadline exceeded")

        monkeypatch.setattr(server, "read_counts", no_answer)

    rows = run(make_tables, tmp_path, [nothing, fall_silent, nothing], heard=heard)
    assert heard == [0]
    assert ["size" in row for row in rows] == [True, False, False, False]


def test_checkpoints_come_periodically_and_only_the_last_stays_on_disk(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    left: list[int] = []

    def insert_and_count(client: reverb.Client) -> None:
        left.append(len(os.listdir(tmp_path)))
        insert(client, 3)

    rows = run(make_tables, tmp_path, [insert_and_count] * 7, checkpoint_seconds=2 * PERIOD_SECONDS)

    # Every second period, and at the end.
    assert ["checkpoint_bytes" in row for row in rows] == [False, True] * 3 + [False, True]
    assert left == [0, 0, 1, 1, 1, 1, 1]
    (last,) = tmp_path.iterdir()
    assert (last / "DONE").exists()


def test_the_size_reported_is_that_of_the_files_on_disk(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    rows = run(make_tables, tmp_path, [lambda client: insert(client, 50)])
    on_disk = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert rows[-1]["checkpoint_bytes"] == on_disk > 1000
    assert rows[-1]["checkpoint_seconds"] > 0.0


def test_a_run_directory_that_was_deleted_is_not_made_anew(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()

    def delete(client: reverb.Client) -> None:
        shutil.rmtree(run_dir)

    with pytest.raises(FileNotFoundError):
        run(make_tables, run_dir / "replay", [nothing, delete, nothing], checkpoint_seconds=1.0)
    with pytest.raises(FileNotFoundError):
        run(make_tables, run_dir / "replay", [nothing])
    assert not run_dir.exists()


def test_neither_a_clock_set_back_nor_a_half_written_checkpoint_costs_the_new_one(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    run(make_tables, tmp_path, [lambda client: insert(client, 3)])
    (old,) = tmp_path.iterdir()
    old.rename(tmp_path / "2999-12-31T23:59:59+00:00")
    (tmp_path / "2999-99-half").mkdir()
    (tmp_path / "2999-99-half" / "chunks.tfrecord").write_bytes(b"torn")

    run(make_tables, tmp_path, [lambda client: insert(client, 4)])

    assert size_after_restart(make_tables, tmp_path) == 7


@pytest.mark.parametrize("room_bytes", [0, 100, 300])
def test_a_checkpoint_that_a_full_disk_cuts_short_is_reported_and_the_one_before_kept(
    room_bytes: int,
    make_tables: Tables,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
    file_size_limit: Callable[[int], None],
) -> None:
    directory = tmp_path / "replay"
    run(make_tables, directory, [lambda client: insert(client, 3)])

    def fill_disk(client: reverb.Client) -> None:
        insert(client, 50)
        file_size_limit(room_bytes)

    rows: list[dict[str, Any]] = []
    last_words = pytest.raises(OSError, match="no last replay checkpoint was written")
    with caplog.at_level(logging.ERROR), last_words:
        run(
            make_tables,
            directory,
            [fill_disk, nothing],
            checkpoint_seconds=2 * PERIOD_SECONDS,
            rows=rows,
        )
    file_size_limit(resource.RLIM_INFINITY)

    assert [row.get("checkpoint_failed") for row in rows] == [None, 1, 1]
    assert "no replay checkpoint was written" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["replay"]
    assert size_after_restart(make_tables, directory) == 3


def test_a_server_that_ended_while_it_wrote_restores_the_checkpoint_before(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    directory = tmp_path / "replay"
    run(make_tables, directory, [lambda client: insert(client, 3)])
    (whole,) = directory.iterdir()
    # As a crash in the middle leaves it: the old one aside, the new one torn.
    torn = shutil.copytree(whole, tmp_path / "copy")
    whole.rename(tmp_path / "replay.previous")
    torn = torn.rename(directory / "2026-01-01T00:00:00+00:00")
    items = torn / "items.tfrecord"
    items.write_bytes(items.read_bytes()[:-1])

    assert size_after_restart(make_tables, directory) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["replay"]


def test_a_damaged_checkpoint_is_moved_away_and_the_server_starts_without_it(
    make_tables: Tables, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "replay"
    run(make_tables, directory, [lambda client: insert(client, 3)])
    (whole,) = directory.iterdir()
    items = whole / "items.tfrecord"
    items.write_bytes(items.read_bytes()[:-1])

    assert size_after_restart(make_tables, directory) == 0
    assert "is damaged" in caplog.text
    assert (tmp_path / "replay.damaged" / "items.tfrecord").exists()


def test_a_server_that_ended_just_after_it_wrote_restores_the_new_checkpoint(
    make_tables: Tables, tmp_path: pathlib.Path
) -> None:
    directory = tmp_path / "replay"
    run(make_tables, directory, [lambda client: insert(client, 3)])
    (old,) = directory.iterdir()
    shutil.copytree(old, tmp_path / "replay.previous")
    run(make_tables, tmp_path / "other", [lambda client: insert(client, 8)])
    (new,) = (tmp_path / "other").iterdir()
    shutil.rmtree(old)
    new.rename(directory / new.name)

    assert size_after_restart(make_tables, directory) == 8
    assert not (tmp_path / "replay.previous").exists()


def test_the_server_stops_when_a_report_fails(make_tables: Tables, tmp_path: pathlib.Path) -> None:
    number = portpicker.pick_unused_port()

    def fail(row: dict[str, Any]) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        server.serve(
            make_tables(),
            SINGLE,
            port=number,
            checkpoint_directory=tmp_path,
            checkpoint_seconds=1e9,
            report_seconds=0.0,
            report=fail,
            wait_for_stop=lambda seconds: False,
        )
    port.check_port_free(number)


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::")]
)
def test_a_port_someone_listens_on_is_refused_and_free_again_afterwards(
    family: socket.AddressFamily, host: str
) -> None:
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        number = listener.getsockname()[1]
        with pytest.raises(port.PortInUseError, match=f"port {number} is in use.*--port"):
            port.check_port_free(number)
    port.check_port_free(number)


def test_a_second_server_on_the_same_port_is_refused(
    make_tables: Tables, make_server: Callable[..., reverb.Server], tmp_path: pathlib.Path
) -> None:
    first = make_server()
    with pytest.raises(port.PortInUseError):
        server.serve(
            make_tables(),
            SINGLE,
            port=first.port,
            checkpoint_directory=tmp_path,
            checkpoint_seconds=1.0,
            report_seconds=1.0,
            report=lambda row: None,
            wait_for_stop=lambda seconds: True,
        )
    assert list(tmp_path.iterdir()) == []


def send_large_rows(client: reverb.Client, num_rows: int, megabytes: int) -> None:
    """Rows of telemetry as no role of ours sends them."""
    noise = np.random.default_rng(0).integers(0, 256, megabytes << 20, np.uint8)
    with client.trajectory_writer(1, validate_items=False) as stranger:
        for _ in range(num_rows):
            stranger.append({"row": noise})
            stranger.create_item(tables.TELEMETRY, 1.0, {"row": stranger.history["row"][-1]})
        stranger.flush(timeout_ms=60_000)


@pytest.mark.parametrize(("num_rows", "periods"), [(4, 1), (1, 8)])
def test_rows_of_telemetry_that_fill_the_memory_are_dropped_however_slowly_they_come(
    make_tables: Tables,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    num_rows: int,
    periods: int,
) -> None:
    monkeypatch.setattr(server, "_UNEXPLAINED_BYTES", 80 << 20)
    sizes: list[int] = []

    def look(client: reverb.Client) -> None:
        sizes.append(client.server_info(timeout=5)[tables.TELEMETRY].current_size)

    def flood(client: reverb.Client) -> None:
        send_large_rows(client, num_rows, 33)  # from 32 MB on, memory goes back when it is freed
        look(client)

    run(make_tables, tmp_path, [*[flood] * periods, look, nothing])
    assert max(sizes) < 6
    assert sizes[-1] < 4


def test_replay_that_grows_and_rows_that_are_read_drop_no_telemetry(
    make_tables: Tables, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_UNEXPLAINED_BYTES", 12 << 20)
    sizes: list[int] = []

    def read(client: reverb.Client) -> None:
        sizes.append(client.server_info(timeout=5)[tables.TELEMETRY].current_size)
        assert list(client.sample(tables.TELEMETRY, sizes[-1], emit_timesteps=False))

    def grow(client: reverb.Client) -> None:
        send_large_rows(client, 1, 8)
        insert(client, 300)

    run(make_tables, tmp_path, [grow, grow, read, nothing, grow, grow, read, nothing])
    assert sizes == [2, 2]
