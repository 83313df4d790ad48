"""A run as lines of a log."""

import io

from launch.monitor.plain_view import PlainView, format_line
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


def test_its_line_has_the_numbers_that_matter() -> None:
    assert format_line(busy_run()) == (
        "12.5M/200M frames 6.2% ETA 10h 25m | 5,000 frames/s | 27.3 updates/s | loss 0.0125 "
        "| return -12.5 | eval -9.8 | samples/insert 7.98"
    )
