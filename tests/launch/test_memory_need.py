"""What a run needs of a host: refused where it is not there, warned of where it is crowded."""

import dataclasses

import pytest

from launch import config_checks
from launch.config import PRESETS
from launch.engines import local
from launch.errors import InputError
from launch.layout import NodeName, node_names
from launch.memory_need import memory_need
from launch.supervise.supervisor import Outcome

GIB = 2**30


def with_actors(number):
    config = PRESETS["cpu"]
    return dataclasses.replace(config, actor=dataclasses.replace(config.actor, actors=number))


def test_the_presets_need_what_they_were_seen_to_take():
    """Some less than measured: 1.7 GiB without replay for `cpu` and its two actors."""
    need = memory_need(PRESETS["cpu"], node_names(PRESETS["cpu"]))
    assert 1.2 * GIB < need.actors + need.others < 1.7 * GIB
    assert need.replay == 100_000 * 4096


def test_an_actor_host_needs_memory_for_actors_and_what_they_are_forked_from():
    one, two = (
        memory_need(PRESETS["paper"], [NodeName("actor", index) for index in range(number)])
        for number in (1, 2)
    )
    assert one.replay == 0 < one.others == two.others
    assert 2 * one.actors == two.actors == two.total - two.others


def test_replay_in_the_learners_process_is_on_the_learners_host_too():
    config = PRESETS["paper"]
    colocated = dataclasses.replace(
        config, replay=dataclasses.replace(config.replay, colocate=True)
    )
    assert memory_need(colocated, node_names(colocated)).replay == 1_000_000 * 4096


def test_actors_that_cannot_fit_are_refused_before_anything_is_written(
    refuse, tmp_path, monkeypatch
):
    monkeypatch.setattr(config_checks, "available_bytes", lambda: 24 * GIB)
    message = refuse("train", "--actors", "200", "--run-dir", str(tmp_path / "run"))
    assert message.startswith("vantage: error: actors=200 and replay_capacity_steps=100000 need")
    assert "but 24.0 GiB are free; lower --actors\n" in message
    assert not list(tmp_path.iterdir())


def test_streams_that_no_core_is_left_for_are_refused_on_the_learners_host(
    refuse, tmp_path, monkeypatch
):
    monkeypatch.setattr(config_checks, "usable_cores", lambda: 4)
    message = refuse("train", "--sample-streams", "5", "--run-dir", str(tmp_path / "run"))
    assert "sample_streams=5: each takes about a core, and this host has 4; " in message
    assert "--sample-streams can be 4 at most here" in message
    five = PRESETS["cpu"]
    five = dataclasses.replace(five, replay=dataclasses.replace(five.replay, sample_streams=5))
    config_checks.check_machine(five, [NodeName("actor", 0)])  # others play


def test_who_cannot_fit_is_told_what_to_lower(monkeypatch):
    monkeypatch.setattr(config_checks, "available_bytes", lambda: GIB)
    with pytest.raises(InputError, match="lower --actors-per-host"):
        config_checks.check_memory(with_actors(9), [NodeName("actor", i) for i in range(9)])
    with pytest.raises(InputError, match="lower --replay-capacity-steps"):
        config_checks.check_memory(PRESETS["paper"], node_names(PRESETS["paper"]))


@pytest.mark.parametrize(
    ("actors", "cores", "said"), [(2, 2, None), (200, 2, "2 cores"), (2, 1, "one core")]
)
def test_more_actors_than_cores_are_warned_of_in_one_line(monkeypatch, actors, cores, said):
    monkeypatch.setattr(config_checks, "usable_cores", lambda: cores)
    warning = config_checks.crowd_warning(node_names(with_actors(actors)))
    assert warning is None if said is None else f"actors={actors} share {said}" in str(warning)


def test_a_crowded_run_is_warned_of_as_it_starts(tmp_path, monkeypatch, capsys):
    from launch.cli import main as cli

    monkeypatch.setattr(config_checks, "usable_cores", lambda: 2)
    monkeypatch.setattr(config_checks, "available_bytes", lambda: 1000 * GIB)
    monkeypatch.setattr(local, "supervise_nodes", lambda *args, **options: Outcome.FINISHED)
    assert cli.run(["train", "--actors", "200", "--run-dir", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith("vantage: warning: actors=200 share 2 cores")
