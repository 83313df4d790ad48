"""A metrics.jsonl read while it grows."""

import os
from pathlib import Path

import pytest

from launch.monitor import follow
from launch.monitor.follow import MetricsFollower, recent_rows
from report.metrics_file import MetricsFile, Row, encode_row
from tests.report.metric_rows import learner_row


def test_a_file_that_does_not_exist_yet_has_no_rows(tmp_path: Path) -> None:
    follower = MetricsFollower(tmp_path / "metrics.jsonl")
    assert follower.poll() == []
    MetricsFile(follower.path).append([learner_row()])
    assert follower.poll() == [learner_row()]
    assert follower.poll() == []


def test_every_row_arrives_once_when_the_file_grows_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [learner_row(frames=frames, note="ü") for frames in range(3)]
    data = b"".join(encode_row(row) for row in rows)
    follower = MetricsFollower(path)
    seen: list[Row] = []
    with open(path, "ab", buffering=0) as file:
        for position in range(len(data)):
            file.write(data[position : position + 1])
            seen += follower.poll()
            assert len(seen) == data[: position + 1].count(b"\n")
    assert seen == rows


def test_a_torn_line_repaired_by_the_writer_is_never_seen(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(encode_row(learner_row(frames=1)) + b'{"time": 12.5, "role": "lear')
    follower = MetricsFollower(path)
    assert [row["frames"] for row in follower.poll()] == [1]
    MetricsFile(path).append([learner_row(frames=2)])
    assert [row["frames"] for row in follower.poll()] == [2]


def test_a_malformed_line_is_raised_once_and_costs_no_other_row(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    first, second = encode_row(learner_row(frames=1)), encode_row(learner_row(frames=2))
    path.write_bytes(first + b"{\n" + second)
    follower = MetricsFollower(path)
    assert [row["frames"] for row in follower.poll()] == [1]
    with pytest.raises(ValueError, match="line 2: "):
        follower.poll()
    assert [row["frames"] for row in follower.poll()] == [2]


def test_a_long_file_comes_in_bounded_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [learner_row(frames=frames) for frames in range(10)]
    MetricsFile(path).append(rows)
    follower = MetricsFollower(path)
    monkeypatch.setattr(follow, "_MAX_POLL_BYTES", 4 * len(encode_row(rows[0])))
    pieces = [follower.poll() for _ in range(4)]
    assert pieces == [rows[:4], rows[4:8], rows[8:], []]


def test_a_follower_of_the_tail_goes_on_with_new_rows(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [learner_row(frames=frames) for frames in range(10)]
    MetricsFile(path).append(rows[:9])
    follower = MetricsFollower(path, tail_bytes=2 * len(encode_row(rows[0])))
    assert follower.poll() == rows[7:9]
    MetricsFile(path).append(rows[9:])
    assert follower.poll() == rows[9:]


def test_a_file_that_was_replaced_by_a_shorter_one_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    MetricsFile(path).append([learner_row(frames=1), learner_row(frames=2)])
    follower = MetricsFollower(path)
    follower.poll()
    path.write_bytes(encode_row(learner_row(frames=3)))
    assert [row["frames"] for row in follower.poll()] == [3]


def test_recent_rows_are_those_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    assert recent_rows(path) == []
    rows = [learner_row(frames=frames) for frames in range(10)]
    MetricsFile(path).append(rows)
    monkeypatch.setattr(follow, "TAIL_BYTES", 3 * len(encode_row(rows[0])))
    assert recent_rows(path) == rows[7:]


def test_a_hole_that_takes_hours_to_read_is_said_once_and_what_comes_after_is_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(encode_row(learner_row(frames=1)))
    os.truncate(path, 1 << 40)
    follower = MetricsFollower(path)
    assert [row["frames"] for row in follower.poll()] == [1]
    with pytest.raises(ValueError, match="line 2: not a metrics row: more than 64 MiB long"):
        follower.poll()
    assert follower.poll() == []
    with path.open("ab") as file:
        file.write(encode_row(learner_row(frames=2)))
    assert [row["frames"] for row in follower.poll()] == [2]
