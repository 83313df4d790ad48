"""What the profile concludes from rates and waits."""

from typing import Any

import pytest

from launch.config import PRESETS
from launch.profile.timed_run import Pause, RoleUse, RunFailedError, TimedRun, summarize
from launch.profile.verdict import Limits, core_time_efficiency, device_verdict, verdict

LIMITS = Limits(cores=2, bare_update_ms=38.0, bare_update_core_ms=70.0, bare_step_core_ms=0.5)


def run_with(*, learner: float, actor: float, learner_cores: float = 1.0) -> TimedRun:
    return TimedRun(
        seconds=30.0,
        frames_per_second=800.0,
        steps_per_second=200.0,
        updates_per_second=25.0,
        samples_per_insert=8.0,
        batches_ready=2.0,
        params_age_p50=1.0,
        params_age_p99=2.0,
        stolen_cores=0.0,
        roles={
            "learner": RoleUse(1, learner_cores, learner),
            "actor": RoleUse(2, 0.2, actor),
            "replay": RoleUse(1, 0.1, None),
        },
    )


@pytest.mark.parametrize(
    ("run", "bound", "advice"),
    [
        (run_with(learner=0.01, actor=0.61), "learner-bound", "fewer actors lose nothing"),
        (run_with(learner=0.01, actor=0.2), "learner-bound", "a faster device"),
        (run_with(learner=0.6, actor=0.0), "actor-bound", "--actors"),
        (run_with(learner=0.6, actor=0.0, learner_cores=1.7), "core-bound", "more cores"),
        (run_with(learner=0.6, actor=0.6), "replay-bound", "--error-buffer"),
    ],
)
def test_the_verdict_names_the_bottleneck_and_the_way_out(
    run: TimedRun, bound: str, advice: str
) -> None:
    said = verdict(run, LIMITS)
    assert said.startswith(f"{bound}: an update every 40 ms, 38 ms of it bare")
    assert advice in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("run", "bound"),
    [
        (run_with(learner=0.01, actor=0.6), "device-bound"),
        (run_with(learner=0.6, actor=0.0, learner_cores=1.7), "core-bound"),
        (run_with(learner=0.6, actor=0.0), "actor-bound"),
        (run_with(learner=0.6, actor=0.6), "sampling-bound"),
    ],
)
def test_the_verdict_for_a_device_says_what_the_host_sustains(run: TimedRun, bound: str) -> None:
    said = device_verdict(run, cores=2, update_ms=0.8)
    assert said.startswith(f"{bound}: the host sustains 25 of the 1,250 updates/s")
    assert f"{run.roles['learner'].wait_fraction:.0%} for data" in said
    assert "\n" not in said


def test_core_time_efficiency_counts_bare_updates_and_bare_steps() -> None:
    expected = (25 * 70.0 + 200 * 0.5) / 2000
    assert core_time_efficiency(run_with(learner=0, actor=0), LIMITS) == pytest.approx(expected)


def rows() -> list[dict[str, Any]]:
    learner = [
        {
            "role": "learner",
            "time": t,
            "frames": 400 * t,
            "updates": 10 * t,
            "data_wait_fraction": w,
        }
        for t, w in ((0, 0.2), (10, 0.4))
    ]
    actors = [
        {"role": f"actor/{i}", "time": 5, "insert_wait_fraction": i / 2, "params_age_seconds": i}
        for i in range(2)
    ]
    return [*learner, *actors]


def test_a_run_is_summarized_from_its_rows_and_its_core_seconds() -> None:
    before, after = {"learner": [1.0], "actor": [1.0, 2.0]}, {"learner": [9.0], "actor": [2.0, 3.0]}
    run = summarize(PRESETS["cpu"], rows(), before, after, seconds=10.0, stolen_seconds=0.5)
    assert (run.frames_per_second, run.steps_per_second, run.updates_per_second) == (400, 100, 10)
    assert run.roles["learner"] == RoleUse(1, 0.8, pytest.approx(0.3))
    assert run.roles["actor"] == RoleUse(2, 0.2, 0.25)
    assert run.params_age_p50 == 0.5
    assert run.stolen_cores == 0.05


def test_pauses_do_not_count() -> None:
    """One within the time between the learner's rows, one after the last of them."""
    pauses = [Pause(2.0, 7.0), Pause(10.5, 99.0)]
    run = summarize(PRESETS["cpu"], rows(), {}, {"learner": [9.0]}, seconds=6.0, pauses=pauses)
    assert (run.frames_per_second, run.updates_per_second) == (800, 20)
    assert run.roles["learner"].cores == 1.5


def test_a_learner_that_is_silent_is_no_measurement() -> None:
    with pytest.raises(RunFailedError, match="reported 1 times"):
        summarize(PRESETS["cpu"], rows()[:1], {}, {}, seconds=10.0)
