"""A run as it is shown to whoever runs it, from its file and its phase."""

import time

import pytest

from launch.monitor.display import RunDisplay
from launch.monitor.run_phase import RunPhase
from launch.monitor.snapshot import Snapshot
from report.metrics_file import MetricsFile
from tests.report.metric_rows import actor_row, learner_row


class Seen:
    """A view that keeps what it was given."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def update(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)

    def close(self) -> None:
        pass


def rows_until(now: float, frames: int) -> list[dict]:
    """Twenty seconds at 100 frames/s."""
    learner = [
        learner_row(now - 20 + k, frames - 2000 + 100 * k, updates=9, updates_per_second=50.0)
        for k in range(21)
    ]
    return [*learner, actor_row(0, time=now, frames=frames, frames_per_second=100.0)]


def test_a_resumed_run_shows_how_far_it_is_and_no_rate_of_its_earlier_start(local_run):
    now = time.time()
    MetricsFile(local_run.metrics_file).append(rows_until(now, 10_000))
    view = Seen()
    display = RunDisplay(local_run.load_config(), local_run, view)
    for phase in ("starting replay", "starting replay", "training"):
        display.show(RunPhase(phase))
    for seen in view.snapshots:
        assert (seen.frames, seen.updates) == (10_000, 9)
        assert seen.updates_per_second is seen.frames_per_second is seen.eta_seconds is None
    assert view.snapshots[-1].actors == ()
    MetricsFile(local_run.metrics_file).append(rows_until(now + 21, 12_100))
    display.show(RunPhase("training"))
    assert view.snapshots[-1].frames_per_second == pytest.approx(100.0)
    assert view.snapshots[-1].eta_seconds == pytest.approx((2_000_000 - 12_100) / 100.0)


def test_the_pace_at_which_replay_filled_is_not_that_of_training(local_run):
    now, view = time.time(), Seen()
    display = RunDisplay(local_run.load_config(), local_run, view)
    MetricsFile(local_run.metrics_file).append(rows_until(now, 2000))
    display.show(RunPhase("filling replay", extent="500/600"))
    display.show(RunPhase("filling replay", extent="600/600"))
    display.show(RunPhase("training"))
    assert view.snapshots[-1].eta_seconds is None
    slow = [learner_row(now + 10 * k, 2000 + 50 * k) for k in (1, 2)]
    MetricsFile(local_run.metrics_file).append(slow)
    display.show(RunPhase("training"))
    assert view.snapshots[-1].frames_per_second == pytest.approx(5.0)


def test_nothing_that_displays_ends_a_supervisor_and_it_is_said_once(local_run, capsys):
    class BrokenView:
        def update(self, snapshot: object) -> None:
            raise OverflowError("cannot convert float infinity to integer")

        def close(self) -> None:
            pass

    display = RunDisplay(local_run.load_config(), local_run, BrokenView())
    display.show(RunPhase("training"))
    local_run.metrics_file.write_text('{"time": 1, "role": "learner", "frames": 1e999}\n' * 3)
    display.show(RunPhase("training"))
    said = capsys.readouterr().out
    assert said == "cannot show progress: cannot convert float infinity to integer\n"
