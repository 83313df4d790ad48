"""The fleet simulator against a real server."""

import pytest

from benchmarks.fleet import Point, capacity, measure
from launch.config import PRESETS


def test_a_small_fleet_inserts_and_follows_the_parameters() -> None:
    point = measure(PRESETS["cpu"], 1, 3.0, sample=False)
    assert point.actors == 1
    assert point.inserts_per_second > 0
    assert point.samples_per_second == 0
    assert point.server_cores > 0
    assert 0 <= point.pull_age_p99 < 60


def test_capacity_is_core_time_per_operation() -> None:
    alone = Point(16, 1000.0, 0.0, 0.5, 1.0)
    sampled = Point(16, 800.0, 2000.0, 0.6, 1.0)
    cost = capacity(alone, sampled)
    assert cost.insert_core_ms == pytest.approx(0.5)
    assert cost.sample_core_ms == pytest.approx(0.1)
    assert cost.cores_for(2, samples_per_insert=4.0) == pytest.approx(2 * 1000 * 0.9 / 1000)
