"""A run as lines of a log."""

import io

from launch.monitor.plain_view import PlainView, format_line
from launch.monitor.run_phase import PhaseClock, RunPhase
from launch.monitor.snapshot import RunState
from tests.launch.monitor.busy_run import busy_run
from tests.report.metric_rows import learner_row


def test_it_prints_a_line_per_period_of_row_time_and_the_last_state_at_the_end() -> None:
    output = io.StringIO()
    view = PlainView(output)
    state = RunState(total_frames=1000, target_samples_per_insert=8.0)
    view.update(state.snapshot())
    for time in range(100, 124):
        state.add([learner_row(time=float(time), frames=time)])
        view.update(state.snapshot())
    printed = [int(line.split("/")[0]) for line in output.getvalue().splitlines()]
    assert printed == [100, 110, 120]
    view.close()
    assert output.getvalue().splitlines()[-1].startswith("123/1k frames 12.3%")


def test_it_prints_every_phase_of_a_start_once_and_then_every_ten_seconds_of_it() -> None:
    output, now = io.StringIO(), [0]
    view, phase_of = PlainView(output), PhaseClock(lambda: now[0])
    state = RunState(total_frames=1000, target_samples_per_insert=8.0)
    for now[0] in range(0, 12):
        view.update(state.snapshot().in_phase(phase_of("starting replay")))
    for now[0] in range(12, 24):
        state.add([learner_row(time=float(now[0]), frames=now[0])])
        view.update(state.snapshot().in_phase(phase_of("filling replay", f"{now[0]}/24")))
    for now[0] in range(24, 26):
        view.update(state.snapshot().in_phase(phase_of("training")))
    view.close()
    assert output.getvalue().splitlines() == [
        "starting replay",
        "starting replay 10s",
        "filling replay 12/24",
        "filling replay 22/24",
        "training",
        "23/1k frames 2.3% ETA 16m 17s | 1 frames/s",
    ]


def test_the_last_line_has_what_came_after_training() -> None:
    output = io.StringIO()
    view, state = PlainView(output), RunState(total_frames=100, target_samples_per_insert=8.0)
    state.add([learner_row(time=1.0, frames=100)])
    view.update(state.snapshot().in_phase(RunPhase("training")))
    state.add([{"time": 2.0, "role": "evaluator", "frames": 100, "eval_return": -21.0}])
    view.update(state.snapshot().in_phase(RunPhase("scoring the final parameters")))
    view.close()
    assert output.getvalue().splitlines()[-1] == "100/100 frames 100.0% | eval -21.0"


def test_its_line_has_the_numbers_that_matter() -> None:
    assert format_line(busy_run()) == (
        "12.5M/200M frames 6.2% ETA 10h 25m | 5,000 frames/s | 27.3 updates/s | loss 0.0125 "
        "| return -12.5 | eval -9.8 | samples/insert 7.98"
    )
