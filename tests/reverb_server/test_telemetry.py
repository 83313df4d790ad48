"""Rows to the monitor: each read once, the oldest dropped, nobody held up."""

import json
import logging
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reverb

from reverb_server import tables, telemetry

MakeServer = Callable[..., reverb.Server]
Connect = Callable[[reverb.Server], reverb.Client]


def send(client: reverb.Client, rows: list[dict[str, Any]], role: str = "actor/0") -> None:
    report = telemetry.TelemetryWriter(client, role, clock=lambda: 12.5)
    for row in rows:
        report(row)
    report.close(timeout_seconds=60.0)


def test_rows_arrive_in_order_stamped_with_time_and_role_and_are_read_once(
    make_server: MakeServer, connect: Connect
) -> None:
    client = connect(make_server())
    send(client, [{"frames": i, "episode_return": -21.0, "note": "é"} for i in range(3)])

    assert telemetry.TelemetryReader(client).drain() == [
        {"time": 12.5, "role": "actor/0", "frames": i, "episode_return": -21.0, "note": "é"}
        for i in range(3)
    ]
    assert telemetry.TelemetryReader(client).drain() == []


def test_a_reader_that_goes_on_gets_each_row_once(
    make_server: MakeServer, connect: Connect
) -> None:
    client = connect(make_server())
    reader = telemetry.TelemetryReader(client)
    assert reader.drain() == []
    for start in (0, 5):
        send(client, [{"i": start + i} for i in range(5)])
        rows = reader.drain(timeout_seconds=60.0)
        assert [row["i"] for row in rows] == list(range(start, start + 5))


def test_rows_of_several_roles_share_the_table(make_server: MakeServer, connect: Connect) -> None:
    server = make_server()
    for role in ("learner", "evaluator"):
        send(connect(server), [{}], role)
    assert [row["role"] for row in telemetry.TelemetryReader(connect(server)).drain()] == [
        "learner",
        "evaluator",
    ]


def test_a_full_table_drops_its_oldest_rows_and_blocks_nobody(
    make_server: MakeServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_TELEMETRY_ROWS", 5)
    client = connect(make_server())
    send(client, [{"i": i} for i in range(12)])
    assert [row["i"] for row in telemetry.TelemetryReader(client).drain()] == [7, 8, 9, 10, 11]


def test_the_table_of_a_run_holds_ten_thousand_rows(make_tables: Callable[..., Any]) -> None:
    table = next(t for t in make_tables() if t.name == tables.TELEMETRY)
    assert (table.info.max_size, table.info.max_times_sampled) == (10_000, 1)


def test_a_reader_whose_server_went_away_half_way_keeps_what_came_and_does_not_hang(
    make_server: MakeServer, connect: Connect
) -> None:
    server = make_server()
    client = connect(server)
    send(client, [{"i": 0}])
    reader = telemetry.TelemetryReader(client)
    # One row more than there is: as when rows are lost with the server that counted them.
    reader._reading = threading.Thread(target=reader._read, args=(2,), daemon=True)
    reader._reading.start()
    assert [row["i"] for row in reader.drain(timeout_seconds=1.0)] == [0]
    assert reader.drain(timeout_seconds=0.01) == []
    send(client, [{"i": 1}])
    assert [row["i"] for row in reader.drain(timeout_seconds=60.0)] == [1]


@pytest.mark.parametrize("junk", [b"A" * 8, b"\xff" * 8, b"[1]", b"3", b"[" * 2000, b'{"a": []}'])
def test_a_row_that_cannot_be_read_is_counted_and_the_others_arrive(
    make_server: MakeServer, connect: Connect, junk: bytes
) -> None:
    client = connect(make_server())
    row = np.zeros(tables.TELEMETRY_ROW_BYTES, np.uint8)
    row[: len(junk)] = np.frombuffer(junk, np.uint8)
    client.insert({"row": row}, {"telemetry": 1.0})
    client.insert({"row": telemetry.encode_row({"role": "x"})}, {"telemetry": 1.0})
    reader = telemetry.TelemetryReader(client)
    assert reader.drain() == [{"role": "x"}]
    assert reader.junk_rows == 1


def test_numbers_that_json_does_not_have_arrive_as_they_are():
    row = {"loss": math.nan, "largest": math.inf, "least": -math.inf, "text": "NaN", "number": 1}
    arrived = telemetry.decode_row(telemetry.encode_row(row))
    assert math.isnan(arrived.pop("loss"))
    del row["loss"]
    assert arrived == row


def test_a_row_fits_to_the_last_byte_and_one_more_is_refused() -> None:
    overhead = len(json.dumps({"text": ""}))
    room = tables.TELEMETRY_ROW_BYTES - overhead
    assert telemetry.decode_row(telemetry.encode_row({"text": "x" * room})) == {"text": "x" * room}
    with pytest.raises(ValueError, match="2049 bytes; at most 2048"):
        telemetry.encode_row({"text": "x" * (room + 1)})


def test_a_row_too_large_leaves_the_writer_usable(
    make_server: MakeServer, connect: Connect
) -> None:
    client = connect(make_server())
    report = telemetry.TelemetryWriter(client, "learner")
    with pytest.raises(ValueError, match="at most 2048"):
        report({"text": "x" * 3000})
    report({"i": 1})
    report.close(timeout_seconds=60.0)
    assert [row["i"] for row in telemetry.TelemetryReader(client).drain()] == [1]


def test_a_writer_drops_and_counts_rows_while_the_server_is_gone_and_says_so_when_it_is_back(
    make_server: MakeServer, connect: Connect, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = make_server()
    server.stop()
    # Made before the server is there: it must not wait for it either.
    report = telemetry.TelemetryWriter(connect(server), "actor/3")
    with caplog.at_level(logging.WARNING):
        for i in range(300):
            report({"i": i})
    assert sum("takes no rows" in record.message for record in caplog.records) == 1

    client = connect(make_server(port=server.port))
    rows: list[dict[str, Any]] = []

    def reported() -> bool:
        report({"i": -1})
        rows.extend(telemetry.TelemetryReader(client).drain())
        return any("dropped_rows" in row for row in rows)

    eventually(reported, 60.0)
    report.close(timeout_seconds=60.0)
    first = next(row for row in rows if "dropped_rows" in row)
    # 257 wait (one more than the limit, which is looked at before a row is added).
    assert sorted(row["i"] for row in rows if row["i"] >= 0) == list(range(257))
    assert first["dropped_rows"] >= 300 - 257
    assert sum("dropped_rows" in row for row in rows) == 1


@pytest.mark.parametrize(
    "stranger",
    [
        {"row": np.zeros(10 << 20, np.uint8)},
        {"row": np.zeros(tables.TELEMETRY_ROW_BYTES - 1, np.uint8)},
        {"row": np.zeros(tables.TELEMETRY_ROW_BYTES, np.float64)},
        {"a": np.zeros(3), "b": np.zeros(3)},
    ],
)
def test_rows_of_another_shape_are_taken_out_of_the_table_and_dropped(
    make_server: MakeServer, connect: Connect, stranger: dict[str, np.ndarray]
) -> None:
    client = connect(make_server())
    with client.trajectory_writer(1, validate_items=False) as writer:
        writer.append(stranger)
        item = {name: column[-1] for name, column in writer.history.items()}
        writer.create_item(tables.TELEMETRY, 1.0, item)
        writer.flush(timeout_ms=20_000)
    reader = telemetry.TelemetryReader(client)
    assert reader.drain(60.0) == []
    assert reader.junk_rows == 1
    assert client.server_info(timeout=5)[tables.TELEMETRY].current_size == 0
