"""TensorBoard event files, read back as TensorBoard reads them."""

import itertools
from pathlib import Path

import numpy as np
import psutil
import pytest

from launch.monitor import events
from launch.monitor.events import EventWriter
from tests.launch.monitor.event_files import read_events
from tests.report.full_disk import file_size_limit
from tests.report.metric_rows import actor_row, learner_row


def test_every_numeric_key_is_a_scalar_over_frames(tmp_path: Path) -> None:
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


def test_the_files_lie_directly_in_the_run_directory(tmp_path: Path) -> None:
    writer = EventWriter(tmp_path)
    assert list(tmp_path.iterdir()) == []
    writer.append([learner_row(loss=0.5)])
    writer.close()
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("events.out.")


def test_a_full_disk_is_an_os_error_and_the_next_file_goes_on(tmp_path: Path, monkeypatch) -> None:
    # The tenth file of a process comes after the ninth, by name too.
    monkeypatch.setattr(events, "_NUMBERS", itertools.count(9))
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


def test_a_run_directory_that_was_deleted_is_not_made_anew(tmp_path):
    with pytest.raises(FileNotFoundError):
        EventWriter(tmp_path / "run").append([learner_row(frames=1, loss=0.5)])
    assert not (tmp_path / "run").exists()


def test_events_leave_nothing_behind_in_memory(tmp_path):
    writer = EventWriter(tmp_path)

    def write(start: int) -> None:
        writer.append([learner_row(frames=i, loss=i + 0.5) for i in range(start, start + 5000)])

    write(0)
    before = psutil.Process().memory_info().rss
    for start in range(5000, 25000, 5000):
        write(start)
    # 40,000 numbers; what keeps them would grow by 10 MB.
    assert psutil.Process().memory_info().rss - before < 4 << 20
    writer.close()
