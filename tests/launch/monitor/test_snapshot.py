"""Rows folded into the state of a run. Time is what the rows say."""

import math
import tracemalloc
from collections.abc import Iterator

import pytest

from launch.monitor.snapshot import RunState
from report.metrics_file import Row
from tests.launch.monitor.busy_run import busy_run, snapshot_of
from tests.report.metric_rows import actor_row, learner_row


def test_the_eta_follows_from_the_rate_of_the_rows() -> None:
    rows = [learner_row(time=1000.0 + 10 * k, frames=5000 * k) for k in range(4)]
    snapshot = snapshot_of(rows, total_frames=115_000)
    assert snapshot.frames == 15_000
    assert snapshot.frames_per_second == pytest.approx(500.0)
    assert snapshot.eta_seconds == pytest.approx(200.0)


def test_the_rate_is_that_of_the_last_minute() -> None:
    fast = [learner_row(time=10.0 * k, frames=10_000 * k) for k in range(11)]
    slow = [learner_row(time=100.0 + 10 * k, frames=100_000 + 1000 * k) for k in range(1, 4)]
    # From t=70 (70,000 frames) to t=130 (103,000 frames).
    assert snapshot_of(fast + slow).frames_per_second == pytest.approx(33_000 / 60)


def test_rare_rows_still_give_a_rate() -> None:
    rows = [learner_row(time=300.0 * k, frames=3000 * k) for k in range(3)]
    assert snapshot_of(rows).frames_per_second == pytest.approx(10.0)


def test_a_stalled_run_has_rate_zero_and_no_eta() -> None:
    rows = [learner_row(time=10.0 * k, frames=500) for k in range(20)]
    snapshot = snapshot_of(rows, total_frames=1000)
    assert (snapshot.frames_per_second, snapshot.eta_seconds) == (0.0, None)


def test_a_finished_run_has_eta_zero() -> None:
    assert snapshot_of([learner_row(frames=1001)], total_frames=1000).eta_seconds == 0.0


def test_a_learner_back_at_its_checkpoint_sets_frames_back_and_starts_a_new_rate() -> None:
    rows = [learner_row(time=10.0 * k, frames=1000 * k) for k in range(5)]
    rows += [learner_row(time=50.0, frames=2000)]
    snapshot = snapshot_of(rows)
    assert (snapshot.frames, snapshot.frames_per_second) == (2000, None)


def test_the_pause_of_a_resumed_run_is_not_in_the_rate() -> None:
    rows = [learner_row(time=10.0 * k, frames=1000 * k) for k in range(5)]
    rows += [learner_row(time=90_000.0 + 10 * k, frames=4000 + 500 * k) for k in range(3)]
    assert snapshot_of(rows).frames_per_second == pytest.approx(50.0)


def test_a_host_with_a_wrong_clock_changes_neither_rate_nor_frames() -> None:
    rows: list[Row] = []
    for k in range(5):
        rows.append(learner_row(time=10.0 * k, frames=1000 * k))
        rows.append(actor_row(0, time=10.0 * k + 7200, frames=10, frames_per_second=90.0))
        rows.append(actor_row(1, time=10.0 * k, frames=20, frames_per_second=10.0))
    snapshot = snapshot_of(rows)
    assert snapshot.frames_per_second == pytest.approx(100.0)
    assert snapshot.frames == 4000
    assert all(actor.silent_seconds < 60 for actor in snapshot.actors)


def test_before_the_learner_reports_any_row_gives_progress() -> None:
    rows = [actor_row(0, time=0.0, frames=100), actor_row(1, time=10.0, frames=300)]
    rows += [actor_row(0, time=20.0, frames=250)]
    snapshot = snapshot_of(rows)
    assert snapshot.frames == 300
    assert snapshot.frames_per_second == pytest.approx(10.0)


def test_the_learners_numbers_are_those_of_its_last_rows() -> None:
    rows = [
        learner_row(updates=1, loss=9.0, data_wait_fraction=0.5, params_version=3),
        learner_row(time=101.0, updates=5, updates_per_second=27.5, loss=0.5),
        {"time": 101.0, "role": "replay", "frames": 0, "samples_per_insert": 6.0, "size": 10},
    ]
    snapshot = snapshot_of(rows, target_samples_per_insert=4.0)
    assert (snapshot.updates, snapshot.loss, snapshot.params_version) == (5, 0.5, 3)
    assert (snapshot.updates_per_second, snapshot.data_wait_fraction) == (27.5, 0.5)
    assert (snapshot.samples_per_insert, snapshot.target_samples_per_insert) == (6.0, 4.0)
    later = snapshot_of([*rows, learner_row(samples_per_insert=7.5)])
    assert later.samples_per_insert == 7.5


def test_a_loss_of_null_is_not_a_number_rather_than_missing() -> None:
    assert snapshot_of([learner_row()]).loss is None
    assert math.isnan(snapshot_of([learner_row(loss=None)]).loss or 0.0)
    assert math.isnan(snapshot_of([learner_row(loss=math.nan)]).loss or 0.0)


def test_the_return_is_the_mean_of_the_last_twenty_episodes_of_all_actors() -> None:
    rows = [actor_row(k % 3, episode_return=float(k), episode_frames=10) for k in range(30)]
    snapshot = snapshot_of(rows)
    assert snapshot.mean_return == pytest.approx(sum(range(10, 30)) / 20)
    assert snapshot.num_episodes == 30


def test_actors_are_listed_by_number_with_their_last_values() -> None:
    rows = [actor_row(i, frames_per_second=100.0 * i, epsilon=0.0) for i in (10, 9, 0)]
    rows += [actor_row(9, params_age_seconds=2.0, insert_wait_fraction=0.25)]
    actors = snapshot_of(rows).actors
    assert [actor.name for actor in actors] == ["0", "9", "10"]
    assert actors[0].epsilon == 0.0
    assert actors[1] == ("9", 900.0, 2.0, 0.25, 0.0, 0.0)


def test_an_actor_that_stops_reporting_is_silent_since_its_last_row() -> None:
    rows = [actor_row(0, time=10.0), actor_row(1, time=10.0), actor_row(1, time=110.0)]
    assert [actor.silent_seconds for actor in snapshot_of(rows).actors] == [100.0, 0.0]


def test_the_last_evaluation_and_the_replay_are_kept() -> None:
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


def test_nothing_reported_is_a_snapshot_too() -> None:
    snapshot = snapshot_of([])
    assert (snapshot.frames, snapshot.time, snapshot.eta_seconds) == (0, None, None)
    assert (snapshot.actors, snapshot.evaluation, snapshot.replay) == ((), None, None)


def test_rates_that_the_learner_does_not_repeat_are_not_shown_as_present_ones() -> None:
    busy = busy_run()
    assert busy.learner_time == 1020.0
    assert busy.as_of(1049.0, report_seconds=5.0) == busy
    for now, report_seconds in ((1051.0, 5.0), (1200.0, 50.0), (900.0, 5.0)):
        later = busy.as_of(now, report_seconds)
        assert later.updates_per_second is later.frames_per_second is later.eta_seconds is None
        assert all(actor.frames_per_second is None for actor in later.actors)
        assert (later.updates, later.frames) == (busy.updates, busy.frames)
    assert busy.as_of(1149.0, report_seconds=50.0) == busy


def test_a_new_start_has_neither_rates_nor_actors_of_the_one_before() -> None:
    state = RunState(total_frames=10**6, target_samples_per_insert=8.0)
    old = [learner_row(10.0 * k, 1000 * k, updates=k, updates_per_second=50.0) for k in range(3)]
    actor = actor_row(0, time=20.0, frames=2000, frames_per_second=90.0, epsilon=0.5)
    state.add([*old, actor])
    state.begin()
    begun = state.snapshot()
    assert (begun.frames, begun.updates, begun.learner_time) == (2000, 2, None)
    assert begun.frames_per_second is begun.eta_seconds is begun.updates_per_second is None
    assert begun.actors == ()
    # Half a minute later: the pause is in no rate.
    state.add([learner_row(50.0 + 10 * k, 2000 + 500 * k, updates_per_second=7.0) for k in (0, 1)])
    later = state.snapshot()
    assert (later.frames_per_second, later.updates_per_second) == (50.0, 7.0)


def test_rows_from_before_the_last_start_give_no_rate_to_it() -> None:
    rows = [learner_row(10.0 * k, 1000 * k, updates_per_second=50.0) for k in range(6)]
    late = actor_row(0, time=3.0, frames=5000, frames_per_second=90.0)  # its clock is behind
    for started, rate in ((0.0, 100.0), (35.0, 100.0), (55.0, None)):
        state = RunState(total_frames=10**6, target_samples_per_insert=8.0)
        state.add_since([*rows, late], started)
        snapshot = state.snapshot()
        assert (snapshot.frames, snapshot.frames_per_second) == (5000, rate)
        assert len(snapshot.actors) == 1


def test_a_finished_run_has_eta_zero_without_rates_too() -> None:
    finished = snapshot_of([learner_row(0.0, 100)], total_frames=100)
    assert finished.without_rates().eta_seconds == 0.0


def test_rows_of_strangers_fill_no_memory() -> None:
    def flood(number: int) -> Iterator[Row]:
        for i in range(number):
            keys = {f"{i}-{k}": 1.0 for k in range(3)}
            yield {"time": float(i), "role": f"actor/{i}", "frames": 1, "epsilon": 0.5, **keys}
            yield {"time": float(i), "role": f"nobody/{i}", "frames": 1, **keys}
            # The clock hardly moves, so nothing ever leaves the window of the rate.
            yield learner_row(time=1e-6 * i, frames=i, **keys)

    state = RunState(total_frames=10**6, target_samples_per_insert=8.0)
    state.add(flood(11_000))
    tracemalloc.start()
    state.add(flood(14_000))
    grown_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown_bytes < 1 << 20
    snapshot = state.snapshot()
    assert (len(snapshot.actors), snapshot.frames) == (10_000, 13_999)


@pytest.mark.parametrize("role", ["actor/", "actor/x", "actor/-1", "actor/01", "actor/\u0663"])
def test_an_actor_has_a_number(role: str) -> None:
    assert snapshot_of([{"time": 1.0, "role": role, "frames": 4, "epsilon": 0.5}]).actors == ()


def test_a_rate_of_many_rows_a_second_is_that_of_few() -> None:
    often = [learner_row(time=0.001 * k, frames=k) for k in range(10_000)]
    assert snapshot_of(often).frames_per_second == pytest.approx(1000.0, rel=0.01)
