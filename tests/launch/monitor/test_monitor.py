"""The monitor: rows into files, TensorBoard and views; full disks, torn lines and odd numbers.

Everything runs on real files. Time is what the rows say: no test looks at the clock.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import pty
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from rich.console import Console

from launch.monitor.events import EventWriter
from launch.monitor.follow import MetricsFollower
from launch.monitor.loop import run_monitor
from launch.monitor.snapshot import RunView, Snapshot
from launch.monitor.terminal import LiveView, PlainView, format_duration, format_line, make_view
from report.metrics_file import MetricsFile, Row, encode_row, read_rows


def learner_row(time: float = 100.0, frames: int = 0, **values: Any) -> Row:
    return {"time": time, "role": "learner", "frames": frames, **values}


def actor_row(index: int, time: float = 100.0, frames: int = 0, **values: Any) -> Row:
    return {"time": time, "role": f"actor/{index}", "frames": frames, **values}


def snapshot_of(rows: list[Row], **totals: Any) -> Snapshot:
    run_view = RunView(**totals)
    run_view.add(rows)
    return run_view.snapshot()


@contextlib.contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Stands in for a disk with that much room: the kernel cuts writes short, then refuses them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestMetricsFile:
    def test_rows_come_back_as_they_were_appended(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        rows = [learner_row(frames=4, loss=0.25, note="ü"), actor_row(0, frames=8, epsilon=1.0)]
        MetricsFile(path).append(rows[:1])
        MetricsFile(path).append(rows[1:])
        assert list(read_rows(path)) == rows
        assert len(path.read_text().splitlines()) == 2

    def test_nan_and_infinities_are_written_as_null(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        MetricsFile(path).append([learner_row(loss=math.nan, a=math.inf, b=np.float32(-np.inf))])

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        row = json.loads(path.read_text(), parse_constant=refuse)
        assert (row["loss"], row["a"], row["b"]) == (None, None, None)

    def test_numpy_scalars_are_written_as_plain_numbers(self) -> None:
        row = json.loads(encode_row({"updates": np.int64(3), "loss": np.float32(0.5)}))
        assert row == {"updates": 3, "loss": 0.5}
        assert isinstance(row["updates"], int)

    def test_a_value_without_a_json_form_is_refused_before_anything_is_written(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "metrics.jsonl"
        with pytest.raises(TypeError, match=r"'weights' is array"):
            MetricsFile(path).append([learner_row(), learner_row(weights=np.zeros(2))])
        assert not path.exists()

    @pytest.mark.parametrize("torn_bytes", [1, 20, 9000])
    def test_a_torn_last_line_is_removed_by_the_next_append(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], torn_bytes: int
    ) -> None:
        path = tmp_path / "metrics.jsonl"
        first, second = learner_row(frames=1), learner_row(frames=2)
        torn = encode_row(learner_row(note="x" * 10_000))[:torn_bytes]
        path.write_bytes(encode_row(first) + torn)
        MetricsFile(path).append([second])
        assert list(read_rows(path)) == [first, second]
        assert f"removed its {torn_bytes} bytes" in capsys.readouterr().err

    def test_a_file_that_is_nothing_but_a_torn_line_starts_afresh(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        path.write_bytes(b'{"time": 1')
        MetricsFile(path).append([learner_row()])
        assert list(read_rows(path)) == [learner_row()]

    def test_a_last_row_that_lacks_only_its_newline_is_kept(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        path.write_bytes(encode_row(learner_row(frames=1)).rstrip(b"\n"))
        MetricsFile(path).append([learner_row(frames=2)])
        assert [row["frames"] for row in read_rows(path)] == [1, 2]

    def test_a_write_that_runs_out_of_room_leaves_whole_lines_only(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        metrics = MetricsFile(path)
        rows = [learner_row(frames=frames) for frames in range(4)]
        room_bytes = len(encode_row(rows[0])) * 5 // 2
        with file_size_limit(room_bytes), pytest.raises(OSError, match="File too large"):
            metrics.append(rows)
        assert path.read_bytes() == encode_row(rows[0]) + encode_row(rows[1])
        metrics.append(rows[3:])
        assert list(read_rows(path)) == [*rows[:2], rows[3]]

    def test_a_full_disk_is_an_os_error(self) -> None:
        with pytest.raises(OSError) as caught:
            MetricsFile("/dev/full").append([learner_row()])
        assert caught.value.errno == errno.ENOSPC


class TestReadRows:
    def test_a_torn_last_line_is_ignored(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        path.write_bytes(encode_row(learner_row()) + b'{"time": 12.5, "ro')
        assert list(read_rows(path)) == [learner_row()]

    @pytest.mark.parametrize("line", [b'{"time": 12.5, "ro', b"[1, 2]", b"", b"\xff{}"])
    def test_a_malformed_line_in_the_middle_names_file_and_line(
        self, tmp_path: Path, line: bytes
    ) -> None:
        path = tmp_path / "metrics.jsonl"
        row = encode_row(learner_row())
        path.write_bytes(row + row + line + b"\n" + row)
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line 3: "):
            list(read_rows(path))

    def test_the_line_number_is_right_when_only_the_tail_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        row = encode_row(learner_row())
        path.write_bytes(row * 100 + b"{\n" + row)
        with pytest.raises(ValueError, match="line 101: "):
            list(read_rows(path, tail_bytes=3 * len(row)))

    def test_the_tail_holds_exactly_the_lines_that_start_in_it(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        rows = [learner_row(frames=frames) for frames in range(10)]
        MetricsFile(path).append(rows)
        line_bytes = len(encode_row(rows[0]))
        for tail_bytes in range(0, 11 * line_bytes):
            num_rows = min(10, tail_bytes // line_bytes)
            assert list(read_rows(path, tail_bytes)) == rows[10 - num_rows :], tail_bytes

    def test_a_line_finished_while_reading_does_not_break_the_reader(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        first, second = encode_row(learner_row(frames=1)), encode_row(learner_row(frames=2))
        path.write_bytes(first.rstrip(b"\n"))
        rows = read_rows(path)
        assert next(rows)["frames"] == 1
        with open(path, "ab") as file:
            file.write(b"\n" + second)
        assert list(rows) == []


class TestMetricsFollower:
    def test_a_file_that_does_not_exist_yet_has_no_rows(self, tmp_path: Path) -> None:
        follower = MetricsFollower(tmp_path / "metrics.jsonl")
        assert follower.poll() == []
        MetricsFile(follower.path).append([learner_row()])
        assert follower.poll() == [learner_row()]
        assert follower.poll() == []

    def test_every_row_arrives_once_when_the_file_grows_byte_by_byte(self, tmp_path: Path) -> None:
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

    def test_a_torn_line_repaired_by_the_writer_is_never_seen(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        path.write_bytes(encode_row(learner_row(frames=1)) + b'{"time": 12.5, "role": "lear')
        follower = MetricsFollower(path)
        assert [row["frames"] for row in follower.poll()] == [1]
        MetricsFile(path).append([learner_row(frames=2)])
        assert [row["frames"] for row in follower.poll()] == [2]

    def test_a_malformed_line_is_raised_once_and_costs_no_other_row(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        first, second = encode_row(learner_row(frames=1)), encode_row(learner_row(frames=2))
        path.write_bytes(first + b"{\n" + second)
        follower = MetricsFollower(path)
        assert [row["frames"] for row in follower.poll()] == [1]
        with pytest.raises(ValueError, match="line 2: "):
            follower.poll()
        assert [row["frames"] for row in follower.poll()] == [2]

    def test_a_long_file_comes_in_bounded_pieces(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        rows = [learner_row(frames=frames) for frames in range(10)]
        MetricsFile(path).append(rows)
        follower = MetricsFollower(path)
        piece_bytes = 4 * len(encode_row(rows[0]))
        pieces = [follower.poll(max_bytes=piece_bytes) for _ in range(4)]
        assert pieces == [rows[:4], rows[4:8], rows[8:], []]

    def test_a_follower_of_the_tail_goes_on_with_new_rows(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        rows = [learner_row(frames=frames) for frames in range(10)]
        MetricsFile(path).append(rows[:9])
        follower = MetricsFollower(path, tail_bytes=2 * len(encode_row(rows[0])))
        assert follower.poll() == rows[7:9]
        MetricsFile(path).append(rows[9:])
        assert follower.poll() == rows[9:]

    def test_a_file_that_was_replaced_by_a_shorter_one_is_read_anew(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.jsonl"
        MetricsFile(path).append([learner_row(frames=1), learner_row(frames=2)])
        follower = MetricsFollower(path)
        follower.poll()
        path.write_bytes(encode_row(learner_row(frames=3)))
        assert [row["frames"] for row in follower.poll()] == [3]


def read_events(directory: Path) -> dict[str, list[tuple[int, float]]]:
    """All scalars of a run directory as TensorBoard itself reads them: tag -> [(step, value)]."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util import tensor_util

    accumulator = EventAccumulator(str(directory), size_guidance={"tensors": 0})
    accumulator.Reload()
    return {
        tag: [
            (event.step, float(tensor_util.make_ndarray(event.tensor_proto)))
            for event in accumulator.Tensors(tag)
        ]
        for tag in accumulator.Tags()["tensors"]
    }


class TestEventWriter:
    def test_every_numeric_key_is_a_scalar_over_frames(self, tmp_path: Path) -> None:
        writer = EventWriter(tmp_path)
        writer.append([learner_row(frames=40, loss=0.5, updates=7), learner_row(frames=80, loss=1)])
        writer.append([actor_row(3, frames=80, epsilon=np.float32(0.25), note="x", missing=None)])
        # Before closing: a batch is there as soon as it is written.
        assert read_events(tmp_path) == {
            "learner/loss": [(40, 0.5), (80, 1.0)],
            "learner/updates": [(40, 7.0)],
            "actor/3/epsilon": [(80, 0.25)],
        }
        writer.close()

    def test_the_files_lie_directly_in_the_run_directory(self, tmp_path: Path) -> None:
        writer = EventWriter(tmp_path)
        assert list(tmp_path.iterdir()) == []
        writer.append([learner_row(loss=0.5)])
        writer.close()
        (file,) = tmp_path.iterdir()
        assert file.name.startswith("events.out.")

    def test_a_full_disk_is_an_os_error_and_the_next_file_goes_on(self, tmp_path: Path) -> None:
        writer = EventWriter(tmp_path)
        writer.append([learner_row(frames=1, loss=0.5)])
        (file,) = tmp_path.iterdir()
        with file_size_limit(file.stat().st_size + 10), pytest.raises(OSError) as caught:
            writer.append([learner_row(frames=2, loss=0.5)])
        assert caught.value.filename == str(tmp_path)
        assert "File too large" in str(caught.value)
        with file_size_limit(0), pytest.raises(OSError):
            writer.append([learner_row(frames=3, loss=0.5)])
        assert list(tmp_path.iterdir()) == [file], "a failed try must not leave an empty file"
        writer.append([learner_row(frames=4, loss=0.25)])
        writer.close()
        assert read_events(tmp_path) == {"learner/loss": [(1, 0.5), (4, 0.25)]}


class TestRunView:
    def test_the_eta_follows_from_the_rate_of_the_rows(self) -> None:
        rows = [learner_row(time=1000.0 + 10 * k, frames=5000 * k) for k in range(4)]
        snapshot = snapshot_of(rows, total_frames=115_000)
        assert snapshot.frames == 15_000
        assert snapshot.frames_per_second == pytest.approx(500.0)
        assert snapshot.eta_seconds == pytest.approx(200.0)

    def test_the_rate_is_that_of_the_last_minute(self) -> None:
        fast = [learner_row(time=10.0 * k, frames=10_000 * k) for k in range(11)]
        slow = [learner_row(time=100.0 + 10 * k, frames=100_000 + 1000 * k) for k in range(1, 4)]
        # From t=70 (70,000 frames) to t=130 (103,000 frames).
        assert snapshot_of(fast + slow).frames_per_second == pytest.approx(33_000 / 60)

    def test_rare_rows_still_give_a_rate(self) -> None:
        rows = [learner_row(time=300.0 * k, frames=3000 * k) for k in range(3)]
        assert snapshot_of(rows).frames_per_second == pytest.approx(10.0)

    def test_a_stalled_run_has_rate_zero_and_no_eta(self) -> None:
        rows = [learner_row(time=10.0 * k, frames=500) for k in range(20)]
        snapshot = snapshot_of(rows, total_frames=1000)
        assert (snapshot.frames_per_second, snapshot.eta_seconds) == (0.0, None)

    def test_a_finished_run_has_eta_zero(self) -> None:
        assert snapshot_of([learner_row(frames=1001)], total_frames=1000).eta_seconds == 0.0

    def test_a_learner_back_at_its_checkpoint_sets_frames_back_and_starts_a_new_rate(self) -> None:
        rows = [learner_row(time=10.0 * k, frames=1000 * k) for k in range(5)]
        rows += [learner_row(time=50.0, frames=2000)]
        snapshot = snapshot_of(rows)
        assert (snapshot.frames, snapshot.frames_per_second) == (2000, None)

    def test_the_pause_of_a_resumed_run_is_not_in_the_rate(self) -> None:
        rows = [learner_row(time=10.0 * k, frames=1000 * k) for k in range(5)]
        rows += [learner_row(time=90_000.0 + 10 * k, frames=4000 + 500 * k) for k in range(3)]
        assert snapshot_of(rows).frames_per_second == pytest.approx(50.0)

    def test_a_host_with_a_wrong_clock_changes_neither_rate_nor_frames(self) -> None:
        rows: list[Row] = []
        for k in range(5):
            rows.append(learner_row(time=10.0 * k, frames=1000 * k))
            rows.append(actor_row(0, time=10.0 * k + 7200, frames=10, frames_per_second=90.0))
            rows.append(actor_row(1, time=10.0 * k, frames=20, frames_per_second=10.0))
        snapshot = snapshot_of(rows)
        assert snapshot.frames_per_second == pytest.approx(100.0)
        assert snapshot.frames == 4000
        assert all(actor.silent_seconds < 60 for actor in snapshot.actors)

    def test_before_the_learner_reports_any_row_gives_progress(self) -> None:
        rows = [actor_row(0, time=0.0, frames=100), actor_row(1, time=10.0, frames=300)]
        rows += [actor_row(0, time=20.0, frames=250)]
        snapshot = snapshot_of(rows)
        assert snapshot.frames == 300
        assert snapshot.frames_per_second == pytest.approx(10.0)

    def test_the_learners_numbers_are_those_of_its_last_rows(self) -> None:
        rows = [
            learner_row(updates=1, loss=9.0, data_wait_fraction=0.5, params_version=3),
            learner_row(time=101.0, updates=5, updates_per_second=27.5, loss=0.5),
            {"time": 101.0, "role": "replay", "frames": 0, "samples_per_insert": 6.0, "size": 10},
        ]
        snapshot = snapshot_of(rows, target_samples_per_insert=8.0)
        assert (snapshot.updates, snapshot.loss, snapshot.params_version) == (5, 0.5, 3)
        assert (snapshot.updates_per_second, snapshot.data_wait_fraction) == (27.5, 0.5)
        assert (snapshot.samples_per_insert, snapshot.target_samples_per_insert) == (6.0, 8.0)
        later = snapshot_of([*rows, learner_row(samples_per_insert=7.5)])
        assert later.samples_per_insert == 7.5

    def test_a_loss_of_null_is_not_a_number_rather_than_missing(self) -> None:
        assert snapshot_of([learner_row()]).loss is None
        assert math.isnan(snapshot_of([learner_row(loss=None)]).loss or 0.0)
        assert math.isnan(snapshot_of([learner_row(loss=math.nan)]).loss or 0.0)

    def test_the_return_is_the_mean_of_the_last_twenty_episodes_of_all_actors(self) -> None:
        rows = [actor_row(k % 3, episode_return=float(k), episode_frames=10) for k in range(30)]
        snapshot = snapshot_of(rows)
        assert snapshot.mean_return == pytest.approx(sum(range(10, 30)) / 20)
        assert snapshot.num_episodes == 30

    def test_actors_are_listed_by_number_with_their_last_values(self) -> None:
        rows = [actor_row(i, frames_per_second=100.0 * i, epsilon=0.0) for i in (10, 9, 0)]
        rows += [actor_row(9, params_age_seconds=2.0, insert_wait_fraction=0.25)]
        actors = snapshot_of(rows).actors
        assert [actor.name for actor in actors] == ["0", "9", "10"]
        assert actors[0].epsilon == 0.0
        assert actors[1] == ("9", 900.0, 2.0, 0.25, 0.0, 0.0)

    def test_an_actor_that_stops_reporting_is_silent_since_its_last_row(self) -> None:
        rows = [actor_row(0, time=10.0), actor_row(1, time=10.0), actor_row(1, time=110.0)]
        assert [actor.silent_seconds for actor in snapshot_of(rows).actors] == [100.0, 0.0]

    def test_the_last_evaluation_and_the_replay_are_kept(self) -> None:
        evaluator = {"time": 1.0, "role": "evaluator", "frames": 400}
        replay = {"time": 1.0, "role": "replay", "frames": 800}
        snapshot = snapshot_of(
            [
                {**evaluator, "eval_return": -21.0, "eval_episodes": 3, "human_normalized": 0.0},
                {**evaluator, "eval_return": 18.5, "eval_episodes": 5, "frames": 500},
                {**replay, "size": 10, "bytes": 999, "checkpoint_seconds": 1.5},
                {**replay, "size": 20, "bytes": 2000},
            ]
        )
        assert snapshot.evaluation == (18.5, 5, None, 500)
        assert snapshot.replay == (20, 2000, 1.5, None)

    def test_nothing_reported_is_a_snapshot_too(self) -> None:
        snapshot = RunView(total_frames=100).snapshot()
        assert (snapshot.frames, snapshot.time, snapshot.eta_seconds) == (0, None, None)
        assert (snapshot.actors, snapshot.evaluation, snapshot.replay) == ((), None, None)


def busy_run(num_actors: int = 2, loss: float | None = 0.0125) -> Snapshot:
    """A run of 12.5M of 200M frames at 5,000 frames/s with every number reported."""
    rows: list[Row] = []
    for k in range(3):
        time, frames = 1000.0 + 10 * k, 12_400_000 + 50_000 * k
        rows.append(
            learner_row(
                time,
                frames,
                updates=310_221,
                updates_per_second=27.3,
                loss=loss,
                data_wait_fraction=0.04,
                samples_per_insert=7.98,
                params_version=1204,
            )
        )
        for i in range(num_actors):
            rows.append(
                actor_row(
                    i,
                    time,
                    frames,
                    frames_per_second=2500.0 - i,
                    params_age_seconds=1.25 + i,
                    insert_wait_fraction=0.07,
                    epsilon=0.015,
                )
            )
            rows.append(actor_row(i, time, frames, episode_return=-12.5, episode_frames=9000))
    last = {"time": 1020.0, "frames": 12_500_000}
    rows.append({**last, "role": "replay", "size": 1_000_000, "bytes": 3_400_000_000})
    evaluation = {"eval_return": -9.75, "eval_episodes": 10, "human_normalized": 0.31}
    rows.append({**last, "frames": 12_000_000, "role": "evaluator", **evaluation})
    return snapshot_of(rows, total_frames=200_000_000, target_samples_per_insert=8.0)


def rendered_lines(snapshot: Snapshot, title: str = "") -> list[str]:
    console = Console(record=True, width=80, file=io.StringIO())
    view = LiveView(console, title=title)
    view.update(snapshot)
    view.close()
    return [line.rstrip() for line in console.export_text().splitlines()]


class TestLiveView:
    def test_it_shows_every_number_in_eighty_columns(self) -> None:
        lines = rendered_lines(busy_run(), title="runs/pong")
        assert max(map(len, lines)) <= 80
        words = {line.split()[0]: " ".join(line.split()) for line in lines if line}
        assert "runs/pong" in words
        assert any("12.5M/200M frames 6.2% ETA 10h 25m" in line for line in lines)
        assert words["rates"] == "rates 5,000 frames/s 27.3 updates/s params v1204"
        assert words["learner"] == "learner 310,221 updates loss 0.0125 waits for data 4%"
        assert words["ratio"] == "ratio 7.98 samples per insert (target 8.00)"
        assert words["return"] == "return -12.5 mean of the last 6 training episodes of 6"
        assert words["evaluation"] == (
            "evaluation -9.8 in 10 episodes at 12M frames, human-normalized 0.31"
        )
        assert words["replay"] == "replay 1,000,000 items, 3.4 GB"
        assert words["0"] == "0 2,500 1.2 s 7% 0.015"
        assert words["all"] == "all 2 4,999 max 2.2 s mean 7% 0.015"

    def test_large_numbers_are_not_cut_off(self) -> None:
        rows = [
            learner_row(updates=12_500_000, updates_per_second=1234.5, loss=1.234e-05),
            {"time": 1.0, "role": "evaluator", "frames": 199_900_000, "eval_return": 123456.7}
            | {"eval_episodes": 100, "human_normalized": 12.34},
        ]
        text = "\n".join(rendered_lines(snapshot_of(rows, total_frames=200_000_000)))
        assert "…" not in text
        assert "human-normalized 12.34" in text

    def test_of_many_actors_it_shows_the_slowest_and_the_sum(self) -> None:
        lines = rendered_lines(busy_run(num_actors=64))
        assert len(lines) < 24, "must fit a small terminal"
        assert lines[-1] == "the 8 slowest of 64 actors"
        assert lines[-2].split()[:3] == ["all", "64", f"{sum(2500 - i for i in range(64)):,}"]
        assert lines[-3].split()[0] == "56"

    def test_a_silent_actor_is_named_and_left_out_of_the_sum(self) -> None:
        rows = [
            actor_row(0, time=0.0, frames_per_second=70.0, epsilon=0.5),
            actor_row(1, time=100.0, frames_per_second=30.0, epsilon=0.25),
        ]
        words = [line.split() for line in rendered_lines(snapshot_of(rows))]
        assert ["0", "silent", "1m", "40s", "-", "-", "-"] in words
        assert ["all", "1", "30", "-", "-", "0.250"] in words

    def test_it_shows_a_run_that_has_not_reported_yet(self) -> None:
        lines = rendered_lines(RunView(total_frames=1000).snapshot())
        assert any("0/1k frames 0.0% ETA -" in line for line in lines)

    def test_a_diverged_loss_is_shown_as_nan(self) -> None:
        assert any("loss nan" in line for line in rendered_lines(busy_run(loss=None)))

    def test_an_update_redraws_in_place(self) -> None:
        output = io.StringIO()
        view = LiveView(Console(file=output, force_terminal=True, width=80, height=24))
        view.update(busy_run())
        assert "\x1b[1A" not in output.getvalue()
        view.update(busy_run())
        view.close()
        assert "\x1b[1A" in output.getvalue(), "the cursor goes up over the last drawing"
        assert output.getvalue().endswith("\x1b[?25h"), "the cursor is visible again at the end"


class TestPlainView:
    def test_it_prints_a_line_per_period_of_row_time_and_the_last_state_at_the_end(self) -> None:
        output = io.StringIO()
        view = PlainView(output, period_seconds=10.0)
        run_view = RunView()
        view.update(run_view.snapshot())
        for time in range(100, 124):
            run_view.add([learner_row(time=float(time), frames=time)])
            view.update(run_view.snapshot())
        printed = [int(line.split()[0]) for line in output.getvalue().splitlines()]
        assert printed == [100, 110, 120]
        view.close()
        assert output.getvalue().splitlines()[-1].startswith("123 frames")

    def test_with_period_zero_it_prints_every_update(self) -> None:
        output = io.StringIO()
        view = PlainView(output, period_seconds=0.0)
        snapshot = snapshot_of([learner_row()])
        view.update(snapshot)
        view.update(snapshot)
        view.close()
        assert len(output.getvalue().splitlines()) == 2

    def test_its_line_has_the_numbers_that_matter(self) -> None:
        assert format_line(busy_run()) == (
            "12.5M/200M frames 6.2% ETA 10h 25m | 5,000 frames/s | 27.3 updates/s | loss 0.0125 "
            "| return -12.5 | eval -9.8 | samples/insert 7.98"
        )

    @pytest.mark.parametrize(
        ("seconds", "text"),
        [(9.9, "9s"), (309, "5m 09s"), (11_100, "3h 05m"), (184_000, "2d 3h")],
    )
    def test_durations_have_two_units(self, seconds: float, text: str) -> None:
        assert format_duration(seconds) == text


class TestMakeView:
    def test_a_terminal_gets_the_live_view(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm")
        main, terminal = pty.openpty()
        with os.fdopen(main, "rb"), os.fdopen(terminal, "w") as file:
            assert isinstance(make_view(Console(file=file)), LiveView)
            monkeypatch.setenv("TERM", "dumb")
            assert isinstance(make_view(Console(file=file)), PlainView)

    def test_a_file_gets_plain_lines_even_if_colour_is_forced(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        with open(tmp_path / "log", "w") as file:
            view = make_view(Console(file=file))
            view.update(busy_run())
            view.close()
        assert (tmp_path / "log").read_text() == format_line(busy_run()) + "\n"


class RecordingView:
    """Keeps the snapshots; fails with the given error while one is set."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.error: OSError | None = None
        self.closed = False

    def update(self, snapshot: Snapshot) -> None:
        if self.error is not None:
            raise self.error
        self.snapshots.append(snapshot)

    def close(self) -> None:
        self.closed = True


class Program:
    """A program that sends one batch of rows per pass and stops after the last but one."""

    def __init__(self, batches: list[list[Row]]):
        self._batches = batches
        self._num_drained = 0

    def drain(self) -> list[Row]:
        self._num_drained += 1
        return self._batches[self._num_drained - 1]

    def should_stop(self, seconds: float) -> bool:
        assert seconds > 0
        return self._num_drained == len(self._batches) - 1


def one_row_batches(num_batches: int) -> list[list[Row]]:
    return [[learner_row(time=float(k), frames=k, loss=0.5)] for k in range(num_batches)]


class TestRunMonitor:
    def test_every_row_reaches_every_sink_also_those_after_the_stop(self, tmp_path: Path) -> None:
        program, view = Program([*one_row_batches(2), [], *one_row_batches(5)[2:]]), RecordingView()
        run_monitor(
            drain=program.drain,
            should_stop=program.should_stop,
            metrics=MetricsFile(tmp_path / "metrics.jsonl"),
            events=EventWriter(tmp_path),
            view=view,
            state=RunView(total_frames=1000),
        )
        assert [row["frames"] for row in read_rows(tmp_path / "metrics.jsonl")] == list(range(5))
        assert read_events(tmp_path) == {"learner/loss": [(step, 0.5) for step in range(5)]}
        assert [snapshot.frames for snapshot in view.snapshots] == [0, 1, 1, 2, 3, 4]
        assert view.snapshots[-1].total_frames == 1000
        assert view.closed

    def test_a_full_disk_is_reported_once_with_the_rows_lost_and_the_rest_goes_on(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        program, view = Program(one_row_batches(40)), RecordingView()
        run_monitor(
            drain=program.drain,
            should_stop=program.should_stop,
            metrics=MetricsFile("/dev/full"),
            events=EventWriter(tmp_path),
            view=view,
        )
        assert len(read_events(tmp_path)["learner/loss"]) == 40
        assert len(view.snapshots) == 40
        assert capsys.readouterr().err.splitlines() == [
            "monitor: cannot write /dev/full: No space left on device; will try again",
            "monitor: /dev/full: still failing at the end, up to 40 rows lost",
        ]

    def test_a_sink_that_works_again_is_used_again_and_its_losses_are_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        directory = tmp_path / "run"
        path = directory / "metrics.jsonl"
        batches = one_row_batches(30)
        program = Program(batches)

        def should_stop(seconds: float) -> bool:
            # The directory appears after the fourth batch, as a remounted disk would.
            if batches[3][0]["frames"] == view.snapshots[-1].frames:
                directory.mkdir()
            return program.should_stop(seconds)

        view = RecordingView()
        run_monitor(
            drain=program.drain,
            should_stop=should_stop,
            metrics=MetricsFile(path),
            events=None,
            view=view,
        )
        frames = [row["frames"] for row in read_rows(path)]
        assert frames == list(range(30 - len(frames), 30))
        num_lost = 30 - len(frames)
        assert 4 < num_lost < 15, "the sink is tried again soon, but not at every pass"
        assert capsys.readouterr().err.splitlines() == [
            f"monitor: cannot write {path}: No such file or directory; will try again",
            f"monitor: {path}: written again, up to {num_lost} rows lost",
        ]

    def test_the_last_rows_are_offered_to_a_failing_sink_once_more(self, tmp_path: Path) -> None:
        directory = tmp_path / "run"
        program = Program(one_row_batches(3))

        def should_stop(seconds: float) -> bool:
            if program.should_stop(seconds):
                directory.mkdir()
                return True
            return False

        run_monitor(
            drain=program.drain,
            should_stop=should_stop,
            metrics=MetricsFile(directory / "metrics.jsonl"),
            events=None,
            view=None,
        )
        assert [row["frames"] for row in read_rows(directory / "metrics.jsonl")] == [2]

    def test_a_closed_terminal_costs_no_rows(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        program, view = Program(one_row_batches(5)), RecordingView()
        view.error = BrokenPipeError(errno.EPIPE, "Broken pipe")
        run_monitor(
            drain=program.drain,
            should_stop=program.should_stop,
            metrics=MetricsFile(tmp_path / "metrics.jsonl"),
            events=None,
            view=view,
        )
        assert len(list(read_rows(tmp_path / "metrics.jsonl"))) == 5
        assert capsys.readouterr().err.splitlines() == [
            "monitor: cannot write the terminal view: Broken pipe; will try again",
            "monitor: the terminal view: still failing at the end",
        ]

    def test_rows_that_cannot_be_recorded_are_reported_and_cost_no_others(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        faulty: list[Row] = [
            {"role": "learner", "frames": 1},
            {"time": 1.0, "frames": 1},
            {"time": 1.0, "role": "learner", "frames": math.nan},
            learner_row(weights=np.zeros(2)),
        ]
        program = Program([[*faulty, learner_row(frames=1)], faulty, [learner_row(frames=2)]])
        run_monitor(
            drain=program.drain,
            should_stop=program.should_stop,
            metrics=MetricsFile(tmp_path / "metrics.jsonl"),
            events=None,
            view=None,
        )
        assert [row["frames"] for row in read_rows(tmp_path / "metrics.jsonl")] == [1, 2]
        reports = [line.split(", such as")[0] for line in capsys.readouterr().err.splitlines()]
        assert reports == [
            "monitor: dropping rows with no finite number as 'time'",
            "monitor: dropping rows with no text as 'role'",
            "monitor: dropping rows with no finite number as 'frames'",
            "monitor: dropping rows with neither a number nor a text as 'weights'",
            "monitor: dropped 8 faulty rows in all",
        ]

    def test_an_error_in_drain_is_raised_with_the_sinks_closed(self, tmp_path: Path) -> None:
        view = RecordingView()

        def drain() -> list[Row]:
            raise RuntimeError("the replay server is gone")

        with pytest.raises(RuntimeError, match="replay server is gone"):
            run_monitor(
                drain=drain,
                should_stop=lambda seconds: False,
                metrics=MetricsFile(tmp_path / "metrics.jsonl"),
                events=None,
                view=view,
            )
        assert view.closed


def test_events_leave_nothing_behind_in_memory(tmp_path):
    events = EventWriter(tmp_path)

    def write(start: int) -> None:
        events.append([learner_row(frames=i, loss=i + 0.5) for i in range(start, start + 5000)])

    write(0)
    before = psutil.Process().memory_info().rss
    for start in range(5000, 25000, 5000):
        write(start)
    # 40,000 numbers; TensorFlow's memory of Python's own would be 10 MB.
    assert psutil.Process().memory_info().rss - before < 4 << 20
    events.close()
