"""The plan's arithmetic, with costs made by hand."""

import dataclasses

import pytest

from launch.config import PRESETS
from launch.errors import InputError
from launch.profile import plan
from launch.profile.plan import Costs, Hosts, plan_for, predict, sentence
from launch.profile.timing import Cost
from tests.launch.profile.made_up_costs import COSTS

CONFIG = PRESETS["paper"]  # batch 32, ratio 8: four steps an update; 200M frames
ON_CPU = COSTS._replace(update=Cost(20.0, 36.0))
LARGE = Hosts(hosts=1, cores_per_host=64, gbit_per_second=100.0)


def test_a_rate_becomes_steps_actors_and_cores() -> None:
    found = plan_for(CONFIG, COSTS, LARGE, updates_per_second=1000.0)
    assert (found.steps_per_second, found.frames_per_second) == (4000.0, 16_000.0)
    assert found.actors == 3  # 4000 steps of 0.5 ms are two cores, of which 0.9 are usable
    pulls = 3 * 2.0  # ten versions a second, of which an actor sees two
    assert found.sampling_cores == pytest.approx(3.0)
    assert found.replay_cores == pytest.approx(0.4 + 0.08 + pulls * 0.001)
    assert found.actor_cores == pytest.approx(2.0 + pulls * 0.005)
    assert found.update_cores == 0.0
    assert (found.hosts, found.network_bytes_per_second) == (1, 0.0)
    assert found.replay_to_learner_bytes_per_second == pytest.approx(2e8)


def test_actors_that_do_not_fit_beside_the_learner_get_hosts() -> None:
    hosts = Hosts(hosts=1, cores_per_host=8, gbit_per_second=100.0)
    slow = COSTS._replace(step=Cost(5.0, 5.0))
    found = plan_for(CONFIG, slow, hosts, updates_per_second=1000.0)
    assert found.actors == 23
    assert found.actor_cores == pytest.approx(20.0 + 23 * 2 * 0.005)
    assert found.hosts == 1 + 3  # 20.2 cores, of which 7.2 of a host are usable
    assert found.network_bytes_per_second == pytest.approx(4000 * 1000 + 23 * 2 * 4e6)


def test_memory_is_replay_and_processes() -> None:
    found = plan_for(CONFIG, COSTS, LARGE, updates_per_second=1000.0)
    assert found.learner_host_bytes > 1_000_000 * 2500
    twice = dataclasses.replace(
        CONFIG, replay=dataclasses.replace(CONFIG.replay, replay_capacity_steps=2_000_000)
    )
    more = plan_for(twice, COSTS, LARGE, updates_per_second=1000.0)
    assert more.learner_host_bytes - found.learner_host_bytes == pytest.approx(2.5e9)


def test_hours_of_one_run_and_of_all() -> None:
    found = plan_for(CONFIG, COSTS, LARGE, updates_per_second=1000.0, runs=57 * 3 * 4)
    assert found.run_hours == pytest.approx(200e6 / 16_000 / 3600)
    assert found.all_runs_hours == pytest.approx(684 * found.run_hours)
    assert found.host_hours == found.all_runs_hours


@pytest.mark.parametrize(
    ("costs", "first", "at"),
    [
        # 0.5 ms of the update, and 1 ms of publishing for every hundredth.
        (COSTS, plan.UPDATE, 1000 / 0.51),
        (COSTS._replace(sample_serial_ms=0.9), plan.SERIAL, 1000 / 0.9),
        (COSTS._replace(sample=Cost(6.0, 3.0)), plan.STREAMS, 8 * 1000 / 6.0),
    ],
)
def test_the_first_part_to_saturate_is_named(costs: Costs, first: str, at: float) -> None:
    found = plan_for(CONFIG, costs, LARGE, updates_per_second=1000.0)
    assert found.saturates_first == first
    assert found.saturates_at_updates_per_second == pytest.approx(at)
    assert first in sentence(found) and "\n" not in sentence(found)


@pytest.mark.parametrize(
    ("costs", "hosts", "said"),
    [
        (COSTS._replace(update=Cost(2.0, 0.0)), LARGE, "the update"),
        (COSTS._replace(sample=Cost(9.0, 3.0)), LARGE, "raise --sample-streams"),
        (COSTS._replace(sample_serial_ms=1.5), LARGE, "one thread does at a time"),
        (
            COSTS._replace(sample=Cost(1.0, 3.0)),
            LARGE._replace(cores_per_host=2),
            "the cores of the learner's host",
        ),
        (
            COSTS._replace(step=Cost(50.0, 50.0)),
            LARGE._replace(gbit_per_second=1.0),
            "the network of the learner's host",
        ),
    ],
)
def test_a_plan_that_nothing_can_reach_is_refused(costs: Costs, hosts: Hosts, said: str) -> None:
    with pytest.raises(InputError, match=r"updates_per_second=1000 cannot be reached") as refused:
        plan_for(CONFIG, costs, hosts, updates_per_second=1000.0)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_two_cores_are_shared_by_all() -> None:
    found = predict(CONFIG, ON_CPU, Hosts(1, 2, 10.0))
    # Core milliseconds of an update: itself, its batch, four steps, and the pulls of two actors.
    core_ms = 36.0 + 3.4 + 4 * 0.52 + 2 / 100 * 6.0
    assert found.updates_per_second == pytest.approx(1000 * (2 * 0.9 - 0.05) / core_ms, rel=1e-3)
    assert found.saturates_first == plan.CORES
    used = found.actor_cores + found.sampling_cores + found.replay_cores + found.update_cores
    assert used == pytest.approx(1.75, rel=1e-3)


def test_an_update_on_the_cpu_is_slower_where_others_use_its_cores() -> None:
    # Little core time for its wall clock: the cores would do more of them.
    found = predict(CONFIG, COSTS._replace(update=Cost(20.0, 24.0)), Hosts(1, 2, 10.0))
    assert found.saturates_first == plan.UPDATE
    beside_ms = 3.4 + 4 * 0.52 + 2 / 100 * 6.0
    expected = (1.0 - 0.05 / 2) / (20.01 + beside_ms / 2) * 1e3
    assert found.updates_per_second == pytest.approx(expected, rel=1e-3)


def test_hosts_for_the_actors_leave_the_learner_its_cores() -> None:
    alone, apart = (predict(CONFIG, ON_CPU, Hosts(hosts, 2, 10.0)) for hosts in (1, 2))
    assert apart.updates_per_second > alone.updates_per_second


def test_too_few_actors_hold_a_run_back() -> None:
    slow = COSTS._replace(step=Cost(50.0, 50.0))
    found = predict(CONFIG, slow, LARGE)
    assert found.saturates_first == plan.ACTORS
    assert found.updates_per_second == pytest.approx(2 * 20 / 4)
