"""What `make bench` writes; its figures are nobody's to test."""

import json

from benchmarks import bench
from benchmarks.device_curve import DevicePoint
from benchmarks.gate_speed import GateSpeed
from benchmarks.sampling_speed import SamplingCosts
from benchmarks.whole_runs import WholeRun
from launch.profile.actor_speed import ActorSpeed
from launch.profile.timed_run import RoleUse, TimedRun
from launch.profile.timing import Cost
from launch.profile.verdict import Limits

ONE = Cost(1.0, 2.0)
RUN = WholeRun(
    run=TimedRun(
        seconds=40.0,
        frames_per_second=1600.0,
        steps_per_second=400.0,
        updates_per_second=100.0,
        samples_per_insert=8.0,
        batches_ready=2.0,
        params_age_p50=1.0,
        params_age_p99=1.0,
        stolen_cores=0.0,
        roles={"learner": RoleUse(1, 1.0, 0.1)},
    ),
    limits=Limits(2, 10.0, 15.0, 0.5),
    naive_updates_per_second=50.0,
    naive_system_updates_per_second=10.0,
    predicted_updates_per_second=90.0,
)
SAMPLING = dict.fromkeys(SamplingCosts._fields, 1.0)
FOUND = bench.Measured(
    update={"ours": Cost(3.0, 6.0), "naive": Cost(4.0, 8.0)},
    actor=ActorSpeed(step=ONE, bare=ONE, emulator=ONE, network=ONE),
    sampling=SamplingCosts(**SAMPLING),
    batches_per_second=500.0,
    replay_bytes_per_step=2300.0,
    publish_fraction={1: 0.001, 64: 0.001},
    runs={"nature": RUN, "nips2013": RUN._replace(predicted_updates_per_second=130.0)},
    curve=[DevicePoint(1, 0.5, 400.0, 0.5, 0.9)],
    gate=[GateSpeed(1, 0.97, 0.5), GateSpeed(64, 0.99, 0.6)],
)


def test_every_ratio_is_written_under_its_name() -> None:
    written = json.loads(json.dumps(bench.as_json(FOUND, bench.bars_of(FOUND))))
    ratios = written["ratios"]
    assert ratios["bare_update_over_naive"] == 0.75
    assert ratios["run_over_naive_nature"] == ratios["run_over_naive_nips2013"] == 2.0
    assert ratios["over_naive_system"] == 10.0
    assert round(ratios["plan_error"], 6) == 0.3  # the larger one
    assert set(ratios) >= {
        *("sample_over_copy", "sample_serial_share", "sample_scaling_1_to_2_cores"),
        *("core_time_efficiency_nature", "core_time_efficiency_nips2013", "actor_overhead"),
        *("publish_fraction_1_actor", "publish_fraction_64_actors"),
    }
    assert (ratios["gate_actor_throughput"], ratios["gate_over_server"]) == (0.97, 0.6)  # the worse
    assert "batches_per_second" not in ratios
    assert written["runs"]["nature"]["updates_per_second"] == 100.0
    assert written["simulated_device"][0]["data_wait_fraction"] == 0.5


def test_a_figure_without_a_bar_is_information() -> None:
    assert bench.Bar("x", 1.0).as_row() == ("x", "1", "", "")
    assert bench.Bar("x", 1.0, 2.0).as_row() == ("x", "1", "<= 2", "met")
    assert bench.Bar("x", 1.0, 2.0, at_most=False).as_row()[2:] == (">= 2", "missed")
