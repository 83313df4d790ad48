"""`vantage profile` as users call it: one short real profile."""

import json
import pathlib
import subprocess

import pytest

from launch.invocation import vantage_command


def test_a_short_profile_of_a_tiny_network(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "profile.json"
    sizes = ("--actors", "1", "--envs-per-actor", "2", "--batch-size", "8")
    flags = ("--network", "tiny", "--seconds", "4", *sizes)
    command = vantage_command("profile", *flags, "--json", str(out))
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert found["verdict"].split(":")[0].endswith("-bound")
    assert found["verdict"][:40] in done.stdout
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
    ],
)
def test_a_profile_of_nothing_is_refused_in_one_line(refuse, flags, said):
    assert said in refuse("profile", *flags)
