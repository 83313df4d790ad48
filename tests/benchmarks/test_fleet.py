"""The fleet simulator against a real server."""

import pytest

from benchmarks import fleet
from benchmarks.fleet_capacity import Point, ServerCosts, extrapolate, fit_costs
from launch.config import PRESETS, Config


def test_a_small_fleet_inserts_and_follows_the_parameters() -> None:
    point = fleet.measure(PRESETS["cpu"], 1, 1.0, sample=False)
    assert point.actors == 1
    assert point.inserts_per_second > 0
    assert point.samples_per_second == 0
    assert point.server_cores > 0
    assert 0 <= point.pull_age_p99 < 60


def test_it_says_what_it_measures_before_it_does(monkeypatch, capsys) -> None:
    said_by_then = []

    def measured(config: Config, actors: int, seconds: float, *, sample: bool) -> Point:
        said_by_then.append(capsys.readouterr().out)
        return Point(actors, 4000.0, 3000.0 * sample, 0.5, None)

    monkeypatch.setattr(fleet, "measure", measured)
    points = fleet.measure_all(PRESETS["cpu"], [1, 64], 5.0)
    assert said_by_then[0] == "1 of 4: 1 actor, nobody samples; starting it, then 5 s\n"
    assert said_by_then[3].splitlines() == [
        "  4,000 inserts/s, 0.50 server cores",
        "4 of 4: 64 actors, sampled; starting it, then 5 s",
    ]
    fleet._print(points, ServerCosts(0.05, 0.04, 0.6), [], 4.0)
    assert "nan" not in capsys.readouterr().out.lower()


def test_costs_are_found_from_points_made_with_them() -> None:
    costs = ServerCosts(insert=0.05, sample=0.04, pull=0.6)
    points = [
        Point(actors, inserts, samples, 0.0, 1.0)
        for actors, inserts, samples in [(1, 7000, 0), (16, 4000, 3000), (256, 1500, 3000)]
    ]
    points = [
        p._replace(
            server_cores=costs.cores_for(
                p.actors, p.inserts_per_second, p.samples_per_second / p.inserts_per_second
            )
        )
        for p in points
    ]
    assert fit_costs(points) == pytest.approx(costs)


def test_a_held_fleet_needs_no_more_than_a_free_one() -> None:
    costs = ServerCosts(insert=0.05, sample=0.04, pull=0.6)
    one, many = extrapolate(costs, 1, 4.0), extrapolate(costs, 1024, 4.0)
    assert one.cores_free == pytest.approx(one.cores_held) == pytest.approx(0.21 + 0.0003)
    # 300 updates of 32 at ratio 4 are 2400 inserts; 512 pulls a second.
    assert many.cores_held == pytest.approx(2400 * 0.21e-3 + 512 * 0.6e-3)
    assert many.cores_free == pytest.approx(1024 * 0.21 + 512 * 0.6e-3)
