"""The live view, as text of 80 columns."""

import io

from rich.console import Console

from launch.monitor.live_view import LiveView
from launch.monitor.run_phase import RunPhase
from launch.monitor.snapshot import Snapshot
from tests.launch.monitor.busy_run import busy_run, snapshot_of
from tests.report.metric_rows import actor_row, learner_row


def rendered_lines(snapshot: Snapshot) -> list[str]:
    console = Console(record=True, width=80, file=io.StringIO())
    view = LiveView(console)
    view.update(snapshot)
    view.close()
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_it_shows_every_number_in_eighty_columns() -> None:
    lines = rendered_lines(busy_run())
    assert max(map(len, lines)) <= 80
    words = {line.split()[0]: " ".join(line.split()) for line in lines if line}
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


def test_large_numbers_are_not_cut_off() -> None:
    rows = [
        learner_row(updates=12_500_000, updates_per_second=1234.5, loss=1.234e-05),
        {"time": 1.0, "role": "evaluator", "frames": 199_900_000, "eval_return": 123456.7}
        | {"eval_episodes": 100, "human_normalized": 12.34},
    ]
    text = "\n".join(rendered_lines(snapshot_of(rows, total_frames=200_000_000)))
    assert "…" not in text
    assert "human-normalized 12.34" in text


def test_of_many_actors_it_shows_the_slowest_and_the_sum() -> None:
    lines = rendered_lines(busy_run(num_actors=64))
    assert len(lines) < 24, "must fit a small terminal"
    assert lines[-1] == "the 8 slowest of 64 actors"
    assert lines[-2].split()[:3] == ["all", "64", f"{sum(2500 - i for i in range(64)):,}"]
    assert lines[-3].split()[0] == "56"


def test_a_silent_actor_is_named_and_left_out_of_the_sum() -> None:
    rows = [
        actor_row(0, time=0.0, frames_per_second=70.0, epsilon=0.5),
        actor_row(1, time=100.0, frames_per_second=30.0, epsilon=0.25),
    ]
    words = [line.split() for line in rendered_lines(snapshot_of(rows))]
    assert ["0", "silent", "1m", "40s", "-", "-", "-"] in words
    assert ["all", "1", "30", "-", "-", "0.250"] in words


def test_it_shows_a_run_that_has_not_reported_yet() -> None:
    lines = rendered_lines(snapshot_of([], total_frames=1000))
    assert any(line.endswith("0/1k frames 0.0%") for line in lines)


def test_it_shows_what_a_run_does_before_it_trains() -> None:
    phase = RunPhase("filling replay", 3.0, "3,120/5,000")
    lines = rendered_lines(busy_run().in_phase(phase))
    assert ["now", "filling", "replay", "3,120/5,000"] in [line.split() for line in lines]
    assert any("12.5M/200M frames 6.2%" in line for line in lines)
    assert not any("ETA" in line for line in lines)
    trains = rendered_lines(busy_run().in_phase(RunPhase("training")))
    assert any("ETA 10h 25m" in line for line in trains)


def test_a_diverged_loss_is_shown_as_nan() -> None:
    assert any("loss nan" in line for line in rendered_lines(busy_run(loss=None)))


def test_an_update_redraws_in_place() -> None:
    output = io.StringIO()
    view = LiveView(Console(file=output, force_terminal=True, width=80, height=24))
    view.update(busy_run())
    assert "\x1b[1A" not in output.getvalue()
    view.update(busy_run())
    view.close()
    assert "\x1b[1A" in output.getvalue(), "the cursor goes up over the last drawing"
    assert output.getvalue().endswith("\x1b[?25h"), "the cursor is visible again at the end"
