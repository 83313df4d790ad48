"""The monitor's loop on real files: full disks, faulty rows, and the end."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from launch.monitor.events import EventWriter
from launch.monitor.loop import run_monitor
from report.metrics_file import MetricsFile, Row, read_rows
from tests.launch.monitor.event_files import read_events
from tests.report.metric_rows import learner_row


class Program:
    """A program that sends one batch of rows per pass and stops after the last but one."""

    def __init__(self, batches: list[list[Row]]):
        self._batches = batches
        self.num_drained = 0

    def drain(self) -> list[Row]:
        self.num_drained += 1
        return self._batches[self.num_drained - 1]

    def should_stop(self, seconds: float) -> bool:
        assert seconds > 0
        return self.num_drained == len(self._batches) - 1


def one_row_batches(num_batches: int) -> list[list[Row]]:
    return [[learner_row(time=float(k), frames=k, loss=0.5)] for k in range(num_batches)]


def monitor(
    program: Program,
    metrics_file: str | Path,
    *,
    should_stop: Callable[[float], bool] | None = None,
    **sinks: Callable[[list[Row]], None],
) -> None:
    run_monitor(
        drain=program.drain,
        should_stop=should_stop or program.should_stop,
        sinks={str(metrics_file): MetricsFile(metrics_file).append, **sinks},
    )


def test_every_row_reaches_every_sink_also_those_after_the_stop(tmp_path: Path) -> None:
    program = Program([*one_row_batches(2), [], *one_row_batches(5)[2:]])
    events = EventWriter(tmp_path)
    monitor(program, tmp_path / "metrics.jsonl", events=events.append)
    events.close()
    assert [row["frames"] for row in read_rows(tmp_path / "metrics.jsonl")] == list(range(5))
    assert read_events(tmp_path) == {"learner/loss": [(step, 0.5) for step in range(5)]}


def test_a_diverged_loss_is_a_null_in_the_file_and_a_nan_on_tensorboard(tmp_path: Path) -> None:
    events = EventWriter(tmp_path)
    program = Program([[learner_row(loss=math.nan)], []])
    monitor(program, tmp_path / "metrics.jsonl", events=events.append)
    events.close()
    [row] = read_rows(tmp_path / "metrics.jsonl")
    assert row["loss"] is None
    [(_, loss)] = read_events(tmp_path)["learner/loss"]
    assert math.isnan(loss)


def test_a_full_disk_is_reported_once_with_the_rows_lost_and_the_rest_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written: list[Row] = []
    monitor(Program(one_row_batches(40)), "/dev/full", other=written.extend)
    assert len(written) == 40
    assert capsys.readouterr().err.splitlines() == [
        "monitor: cannot write /dev/full: No space left on device; will try again",
        "monitor: /dev/full: still failing at the end, up to 40 rows lost",
    ]


def test_a_sink_that_works_again_is_used_again_and_its_losses_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    program = Program(one_row_batches(30))

    def should_stop(seconds: float) -> bool:
        # The directory appears after the fourth batch, as a remounted disk would.
        if program.num_drained == 4:
            path.parent.mkdir()
        return program.should_stop(seconds)

    monitor(program, path, should_stop=should_stop)
    frames = [row["frames"] for row in read_rows(path)]
    assert frames == list(range(30 - len(frames), 30))
    num_lost = 30 - len(frames)
    assert 4 < num_lost < 15, "the sink is tried again soon, but not at every pass"
    assert capsys.readouterr().err.splitlines() == [
        f"monitor: cannot write {path}: No such file or directory; will try again",
        f"monitor: {path}: written again, up to {num_lost} rows lost",
    ]


def test_the_last_rows_are_offered_to_a_failing_sink_once_more(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    program = Program(one_row_batches(3))

    def should_stop(seconds: float) -> bool:
        if program.should_stop(seconds):
            path.parent.mkdir()
            return True
        return False

    monitor(program, path, should_stop=should_stop)
    assert [row["frames"] for row in read_rows(path)] == [2]


def test_rows_that_cannot_be_recorded_are_reported_and_cost_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faulty: list[Row] = [
        {"role": "learner", "frames": 1},
        {"time": 1.0, "frames": 1},
        {"time": 1.0, "role": "learner", "frames": math.nan},
        learner_row(weights=np.zeros(2)),
    ]
    program = Program([[*faulty, learner_row(frames=1)], faulty, [learner_row(frames=2)]])
    monitor(program, tmp_path / "metrics.jsonl")
    assert [row["frames"] for row in read_rows(tmp_path / "metrics.jsonl")] == [1, 2]
    reports = [line.split(", such as")[0] for line in capsys.readouterr().err.splitlines()]
    assert reports == [
        "monitor: dropping rows with no finite number as 'time'",
        "monitor: dropping rows with no text as 'role'",
        "monitor: dropping rows with no finite number as 'frames'",
        "monitor: dropping rows with neither a number nor a text as 'weights'",
        "monitor: dropped 8 faulty rows in all",
    ]


def test_an_error_in_drain_is_raised_with_the_losses_so_far(
    capsys: pytest.CaptureFixture[str],
) -> None:
    batches = one_row_batches(2)

    def drain() -> list[Row]:
        if not batches:
            raise RuntimeError("the replay server is gone")
        return batches.pop()

    with pytest.raises(RuntimeError, match="replay server is gone"):
        run_monitor(
            drain=drain,
            should_stop=lambda seconds: False,
            sinks={"/dev/full": MetricsFile("/dev/full").append},
        )
    assert "still failing at the end, up to 2 rows lost" in capsys.readouterr().err
