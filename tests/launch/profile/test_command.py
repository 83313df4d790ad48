"""`vantage profile`: one short real profile, and what is refused."""

import functools
import json

import pytest

from launch.cli import main as cli
from launch.profile import command, plan_command, timed_run
from tests.launch.profile.made_up_costs import COSTS


def test_a_short_profile_of_a_tiny_network(tmp_path, monkeypatch, capsys):
    # A round of everything, as short as it can be: the figures need not be good ones.
    for name in ("measure_stages", "measure_actor"):
        once = functools.partial(getattr(command, name), rounds=1)
        monkeypatch.setattr(command, name, once)
    monkeypatch.setattr(timed_run, "_SETTLE_SECONDS", 0.5)
    out = tmp_path / "profile.json"
    sizes = ("--actors", "1", "--envs-per-actor", "2", "--batch-size", "8")
    flags = ("--network", "tiny", "--seconds", "3", *sizes)
    assert cli.run(["profile", *flags, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["verdict"].split(":")[0].endswith("-bound")
    assert found["verdict"][:40] in capsys.readouterr().out
    assert {stage["name"] for stage in found["stages"]} >= {"environment", "inference", "update"}
    assert all(stage["wall_ms"] > 0 and stage["bare_ms"] > 0 for stage in found["stages"])
    assert 500 < found["replay_bytes_per_step"] < 8192
    assert found["run"]["updates_per_second"] > 0
    assert found["versions"]["jax"]
    assert (tmp_path / "profile.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--actors", "0"], "actors=0"),
        (["--game", "pongg"], "pongg"),
        (["--seconds", "0"], "seconds=0"),
        (["--sweep-actors", "1,zero"], "1,zero"),
        (["--json", "/dev/null/out.json"], "/dev/null/out.json"),
        (["--simulate-update-ms", "0"], "simulate_update_ms=0"),
        (["--simulate-update-ms=-1"], "simulate_update_ms=-1"),
        (["--simulate-update-ms", "nan"], "simulate_update_ms=nan"),
        (["--simulate-update-ms", "1", "--trace", "out"], "--trace"),
        (["--sweep-actors", "1,2", "--trace", "out"], "drop --sweep-actors"),
        (["--updates-per-second", "10"], "--plan"),
        (["--plan", "--simulate-update-ms", "1"], "drop --simulate-update-ms"),
        (["--plan", "--sweep-actors", "1,2"], "drop --sweep-actors"),
        (["--plan", "--trace", "out"], "drop --trace"),
        (["--plan", "--seconds", "5"], "drop --seconds"),
        (["--plan", "--device", "gpu"], "device=gpu"),
        (["--plan", "--updates-per-second", "0"], "updates_per_second=0"),
        (["--plan", "--updates-per-second", "9", "--update-ms", "200"], "the device makes 5"),
        (["--plan", "--updates-per-second", "9", "--hosts", "2"], "--hosts"),
        (["--plan", "--update-ms", "0"], "update_ms=0"),
        (["--plan", "--cores-per-host", "0"], "cores_per_host=0"),
        (["--plan", "--hosts", "0"], "hosts=0"),
        (["--plan", "--gbit-per-second", "0"], "gbit_per_second=0"),
        (["--plan", "--runs", "57xx4"], "57xx4"),
        (["--plan", "--frames", "100"], "frames=100"),
    ],
)
def test_a_profile_of_nothing_is_refused_in_one_line(refuse, flags, said):
    assert said in refuse("profile", *flags)


def test_a_plan_for_a_device_whose_update_time_is_given_does_not_need_it(monkeypatch, capsys):
    def measured(config, *args, **options):
        assert config.learner.device == "cpu"
        return COSTS

    monkeypatch.setattr(plan_command, "measure_costs", measured)
    assert cli.run(["profile", "--plan", "--device", "gpu", "--update-ms", "2"]) == 0
    said = capsys.readouterr().out
    for row in ("memory of the learner's host", "network between hosts", "hours of a run"):
        assert row in said
    assert "first to saturate is" in said.splitlines()[-1]
