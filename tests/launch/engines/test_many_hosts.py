"""Runs over several hosts without a cluster: what is refused, made and said."""

import json

import pytest

from launch.cli import main as cli
from launch.config_json import fields_that_differ
from launch.engines.options import HostsOptions
from launch.engines.record import load_engine
from launch.gate.keys import actor_key, read_key
from launch.run_dir import RunDir


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--actor-hosts", "0"], "actor_hosts=0 must be at least 1"),
        (["--actors-per-host", "0"], "actors_per_host=0 must be at least 1"),
        (["--learner-cpus", "0"], "learner_cpus=0 must be at least 1"),
        (["--drain-seconds", "-1"], "drain_seconds=-1 must be at least 1"),
        (["--sbatch-extra", "--qos=a\n--x"], "sbatch_extra=--qos=a?--x holds a character"),
        (["--learner-partition", "a\nb"], "learner_partition=a?b holds a character"),
        (["--learner-gres", "gpu:1\x0btouch x"], "learner_gres=gpu:1?touch x holds a character"),
        (["--learner-mem", "1G\r"], "learner_mem=1G? holds a character"),
        (["--actor-partition", "a\nb"], "actor_partition=a?b holds a character"),
        (["--actor-mem", "1G\n"], "actor_mem=1G? holds a character"),
        (["--account", "lab\ntouch x"], "account=lab?touch x holds a character"),
        (["--time", "1-0\ntouch x"], "time=1-0?touch x holds a character"),
        (["--run-dir", "a\ntouch x"], "a?touch x holds a character"),
        (["--time", "8:00"], "time=8:00 leaves too little to train"),
        (["--serial"], "drop --engine"),
        ([], "no sbatch in PATH"),
    ],
)
def test_a_bad_slurm_run_is_refused_in_one_line(refuse, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert said in refuse("train", "--engine", "slurm", *flags)
    assert not list(tmp_path.iterdir())


def test_a_run_directory_that_cannot_be_written_is_refused(refuse, tmp_path):
    (tmp_path / "file").write_text("")
    message = refuse("train", "--engine", "hosts", "--run-dir", str(tmp_path / "file" / "run"))
    assert "cannot write run directory" in message


def test_dry_run_prints_both_scripts_and_writes_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent")  # no Slurm is needed to look
    extra = ["--sbatch-extra", "--qos=high"]
    assert cli.run(["train", "--engine", "slurm", "--actor-hosts", "5", "--dry-run", *extra]) == 0
    printed = capsys.readouterr().out
    config, _, scripts = printed.partition("\n}\n")
    assert json.loads(config + "}")["config"]["actor"]["actors"] == 10
    assert scripts.count("#!/bin/bash") == 2
    assert "#SBATCH --array=0-4" in printed and "#SBATCH --qos=high" in printed
    assert str(tmp_path) in printed  # absolute: the hosts start elsewhere
    assert not list(tmp_path.iterdir())


def test_engine_hosts_makes_the_run_and_says_what_to_start(capsys, tmp_path):
    flags = ["--actor-hosts", "2", "--actors-per-host", "3", "--run-dir", str(tmp_path / "run")]
    assert cli.run(["train", "--engine", "hosts", *flags]) == 0
    commands = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert len(commands) == 3
    assert commands[0].endswith("--groups replay learner evaluator monitor")
    assert commands[2].endswith("--groups actor --index 1")
    run_dir = RunDir(tmp_path / "run")
    assert run_dir.load_config().actor.actors == 6
    record = load_engine(run_dir)
    assert record is not None and record.hosts == HostsOptions(2, 3)


def test_a_local_run_goes_on_over_several_hosts(capsys, local_run):
    run = ("--run-dir", str(local_run.root), "--resume")
    before = local_run.load_config()
    assert cli.run(["train", "--engine", "hosts", "--actor-hosts", "3", *run]) == 0
    moved = local_run.load_config()
    assert load_engine(local_run).hosts == HostsOptions(3, 2)
    assert moved.actor.actors == 6
    assert [name for name, _, _ in fields_that_differ(before, moved)] == [
        "actors",
        "schedule_frames",
    ]
    assert moved.scheduled_frames == before.scheduled_frames
    capsys.readouterr()


@pytest.mark.parametrize(
    ("said", "kept"), [(["--no-isolate"], "no"), (["--isolate"], "yes"), ([], "auto")]
)
def test_resuming_a_run_gives_its_hosts_new_keys_and_keeps_its_isolation(tmp_path, said, kept):
    run_dir = RunDir(tmp_path / "run")
    flags = ["--engine", "hosts", "--run-dir", str(run_dir.root)]
    assert cli.run(["train", *flags, *said]) == 0
    before = read_key(run_dir.keys / actor_key(0))
    assert cli.run(["train", "--run-dir", str(run_dir.root), "--resume"]) == 0
    after = read_key(run_dir.keys / actor_key(0))
    assert before.run_id != after.run_id and before.authority != after.authority
    record = load_engine(run_dir)
    assert record is not None and (record.run_id, record.isolation) == (after.run_id, kept)
