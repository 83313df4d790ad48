"""metrics.jsonl on real files: full disks, torn lines and odd numbers."""

import errno
import json
import math
import os
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from report.metrics_file import MetricsFile, Row, encode_row, fault_of, read_rows
from tests.report.full_disk import file_size_limit
from tests.report.metric_rows import actor_row, learner_row


def test_rows_come_back_as_they_were_appended(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [learner_row(frames=4, loss=0.25, note="ü"), actor_row(0, frames=8, epsilon=1.0)]
    MetricsFile(path).append(rows[:1])
    MetricsFile(path).append(rows[1:])
    assert list(read_rows(path)) == rows
    assert len(path.read_text().splitlines()) == 2


def test_nan_and_infinities_are_written_as_null(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    MetricsFile(path).append([learner_row(loss=math.nan, a=math.inf, b=np.float32(-np.inf))])

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    row = json.loads(path.read_text(), parse_constant=refuse)
    assert (row["loss"], row["a"], row["b"]) == (None, None, None)


def test_numpy_scalars_are_written_as_plain_numbers() -> None:
    row = json.loads(encode_row({"updates": np.int64(3), "loss": np.float32(0.5)}))
    assert row == {"updates": 3, "loss": 0.5}
    assert isinstance(row["updates"], int)


def test_a_value_without_a_json_form_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with pytest.raises(TypeError, match=r"'weights' is array"):
        MetricsFile(path).append([learner_row(), learner_row(weights=np.zeros(2))])
    assert not path.exists()


@pytest.mark.parametrize("torn_bytes", [1, 20, 9000])
def test_a_torn_last_line_is_removed_by_the_next_append(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], torn_bytes: int
) -> None:
    path = tmp_path / "metrics.jsonl"
    first, second = learner_row(frames=1), learner_row(frames=2)
    torn = encode_row(learner_row(note="x" * 10_000))[:torn_bytes]
    path.write_bytes(encode_row(first) + torn)
    MetricsFile(path).append([second])
    assert list(read_rows(path)) == [first, second]
    assert f"removed its {torn_bytes} bytes" in capsys.readouterr().err


def test_a_file_that_is_nothing_but_a_torn_line_starts_afresh(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"time": 1')
    MetricsFile(path).append([learner_row()])
    assert list(read_rows(path)) == [learner_row()]


def test_a_last_row_that_lacks_only_its_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(encode_row(learner_row(frames=1)).rstrip(b"\n"))
    MetricsFile(path).append([learner_row(frames=2)])
    assert [row["frames"] for row in read_rows(path)] == [1, 2]


def test_a_write_that_runs_out_of_room_leaves_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path)
    rows = [learner_row(frames=frames) for frames in range(4)]
    room_bytes = len(encode_row(rows[0])) * 5 // 2
    with file_size_limit(room_bytes), pytest.raises(OSError, match="File too large"):
        metrics.append(rows)
    assert path.read_bytes() == encode_row(rows[0]) + encode_row(rows[1])
    metrics.append(rows[3:])
    assert list(read_rows(path)) == [*rows[:2], rows[3]]


def test_a_full_disk_is_an_os_error() -> None:
    with pytest.raises(OSError) as caught:
        MetricsFile("/dev/full").append([learner_row()])
    assert caught.value.errno == errno.ENOSPC


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(encode_row(learner_row()) + b'{"time": 12.5, "ro')
    assert list(read_rows(path)) == [learner_row()]


@pytest.mark.parametrize("line", [b'{"time": 12.5, "ro', b"[1, 2]", b"", b"\xff{}"])
def test_a_malformed_line_in_the_middle_names_file_and_line(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    row = encode_row(learner_row())
    path.write_bytes(row + row + line + b"\n" + row)
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line 3: "):
        list(read_rows(path))


def test_the_line_number_is_right_when_only_the_tail_is_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    row = encode_row(learner_row())
    path.write_bytes(row * 100 + b"{\n" + row)
    with pytest.raises(ValueError, match="line 101: "):
        list(read_rows(path, tail_bytes=3 * len(row)))


def test_the_tail_holds_exactly_the_lines_that_start_in_it(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rows = [learner_row(frames=frames) for frames in range(10)]
    MetricsFile(path).append(rows)
    line_bytes = len(encode_row(rows[0]))
    for tail_bytes in range(0, 11 * line_bytes):
        num_rows = min(10, tail_bytes // line_bytes)
        assert list(read_rows(path, tail_bytes)) == rows[10 - num_rows :], tail_bytes


def test_a_line_finished_while_reading_does_not_break_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    first, second = encode_row(learner_row(frames=1)), encode_row(learner_row(frames=2))
    path.write_bytes(first.rstrip(b"\n"))
    rows = read_rows(path)
    assert next(rows)["frames"] == 1
    with open(path, "ab") as file:
        file.write(b"\n" + second)
    assert list(rows) == []


def test_a_line_beyond_the_limit_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """In memory of the limit's size, however long the line is."""
    path = tmp_path / "metrics.jsonl"
    with path.open("wb") as file:
        file.write(encode_row(learner_row(frames=1)))
        file.seek(64 << 20, os.SEEK_CUR)  # a line of zeros that takes no room on disk
        file.write(b"\n" + encode_row(learner_row(frames=2)))
    said: list[str] = []
    tracemalloc.start()
    frames = [row["frames"] for row in read_rows(path, on_malformed=lambda e: said.append(str(e)))]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert frames == [1, 2]
    assert said == [f"{path}, line 2: not a metrics row: longer than 1 MiB"]
    assert peak < 8 << 20


def sparse_file(path: Path, *, last: bytes) -> None:
    """A row, a terabyte that takes no room on disk, and an end."""
    with path.open("wb") as file:
        file.write(encode_row(learner_row(frames=1)))
        file.seek(1 << 40)
        file.write(last)


def bytes_read() -> int:
    """By this process so far, of whatever file."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


@pytest.mark.parametrize("last", [b"x", b"\n" + encode_row(learner_row(frames=2))])
def test_a_hole_that_takes_hours_to_read_ends_the_file(tmp_path: Path, last: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    sparse_file(path, last=last)
    said: list[str] = []
    before = bytes_read()
    frames = [row["frames"] for row in read_rows(path, on_malformed=lambda e: said.append(str(e)))]
    reason = "more than 64 MiB long; the rest of the file is not read"
    assert (frames, said) == ([1], [f"{path}, line 2: not a metrics row: {reason}"])
    with pytest.raises(ValueError, match="line 2: not a metrics row: more than 64 MiB long"):
        list(read_rows(path))
    assert bytes_read() - before < 256 << 20


def test_lines_far_into_a_file_are_not_counted_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    row = encode_row(learner_row(frames=2))
    sparse_file(path, last=b"\n" + row + b"junk\n" + row)
    before = bytes_read()
    with pytest.raises(ValueError, match=r"line 2 from byte 1099511627777 on: not a metrics row"):
        list(read_rows(path, tail_bytes=2 * len(row) + 5))
    assert bytes_read() - before < 16 << 20


def test_a_torn_last_line_of_any_length_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    row = encode_row(learner_row(frames=1))
    with path.open("wb") as file:
        file.write(row)
        file.seek(20 << 20, os.SEEK_CUR)
        file.write(b"x")
    MetricsFile(path).append([learner_row(frames=2)])
    assert path.read_bytes() == row + encode_row(learner_row(frames=2))


def test_text_that_is_read_or_written_is_plain_and_numbers_have_bounds(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"ro\\u001ble": "\\u001b[2J\\ud800", "a": 1e999, "b": NaN}\n')
    assert list(read_rows(path)) == [{"ro?le": "?[2J?", "a": None, "b": None}]
    path.write_bytes(b'{"c": 1' + b"0" * 400 + b"}\n")
    assert list(read_rows(path)) == [{"c": None}]
    assert encode_row({"note": "\x1b[2J", "n": 10**400}) == b'{"note": "?[2J", "n": null}\n'


@pytest.mark.parametrize("text", [b'{"a": [1]}', b'{"a": {}}', b"[" * 100_000, b'{"a":' * 100_000])
def test_what_is_nested_is_no_row(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(text + b"\n")
    with pytest.raises(ValueError, match="line 1: not a metrics row"):
        list(read_rows(path))


def test_many_malformed_lines_are_counted_once_through(tmp_path: Path) -> None:
    """Not each from the beginning: that would be hours for a file of a hundred megabytes."""
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"x\n" * 50_000)
    said: list[str] = []
    assert list(read_rows(path, on_malformed=lambda error: said.append(str(error)))) == []
    assert len(said) == 50_000 and f"{path}, line 50000:" in said[-1]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (learner_row(), None),
        ({"time": 1.0, "frames": 1}, "no text as 'role'"),
        (learner_row(frames=1.7e308), "a number out of bounds as 'frames'"),
        (learner_row(frames=2**63 - 1), "a number out of bounds as 'frames'"),
        (learner_row(frames=10**400), "no finite number as 'frames'"),
        (learner_row(frames=-1), "a number out of bounds as 'frames'"),
        (learner_row(time=math.inf), "no finite number as 'time'"),
        (learner_row(time="now"), "no finite number as 'time'"),
        (learner_row(loss=[1.0]), "neither a number nor a text as 'loss'"),
    ],
)
def test_what_a_run_cannot_have_said_is_found(row: Row, fault: str | None) -> None:
    assert fault_of(row) == fault


def test_a_pipe_under_the_name_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(OSError, match="not a plain file"):
        list(read_rows(tmp_path / "metrics.jsonl"))
