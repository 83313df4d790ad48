"""Runs over several hosts without a cluster: what is refused, what is stored, how hosts meet."""

import json
import os
import pathlib
import signal
import socket
import sys

import pytest

from launch.cli import main as cli
from launch.cli.argv import parse_train
from launch.config import PRESETS
from launch.engines import preflight
from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord, load_engine
from launch.errors import InputError
from launch.layout import NodeName
from launch.run_dir import RunDir
from launch.supervise import nodes_on_host as host_nodes
from launch.supervise.node_process import NodeSpec
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome
from tests.launch.cli.test_bad_input import refuse


@pytest.fixture
def run_dir(tmp_path, monkeypatch):
    """A run of two actor hosts, as --engine hosts makes it."""
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(PRESETS["cpu"])
    EngineRecord("hosts", "c0ffee", HostsOptions(2, 3), SlurmOptions()).save(run_dir)
    return run_dir


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--actor-hosts", "0"], "actor_hosts=0 must be at least 1"),
        (["--actors-per-host", "0"], "actors_per_host=0 must be at least 1"),
        (["--learner-cpus", "0"], "learner_cpus=0 must be at least 1"),
        (["--drain-seconds", "-1"], "drain_seconds=-1 must be at least 1"),
        (["--sbatch-extra", "--qos=a\n--x"], "sbatch_extra must be a single line"),
        (["--time", "8:00"], "time=8:00 leaves too little to train"),
        (["--serial"], "drop --engine"),
        ([], "no sbatch in PATH"),
    ],
)
def test_a_bad_slurm_run_is_refused_in_one_line(capsys, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert said in refuse(capsys, "train", "--engine", "slurm", *flags)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--engine", "slurm", "--actors", "64"], "give --actor-hosts and --actors-per-host"),
        (["--actor-hosts=8"], "--actor-hosts needs --engine slurm or hosts, not local"),
        (["--engine=hosts", "--account=lab"], "--account needs --engine slurm, not hosts"),
    ],
)
def test_a_flag_that_the_engine_would_ignore_is_refused(capsys, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    assert said in refuse(capsys, "train", *flags)
    assert not list(tmp_path.iterdir())


def test_a_run_directory_that_cannot_be_written_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    message = refuse(
        capsys, "train", "--engine", "hosts", "--run-dir", str(tmp_path / "file" / "run")
    )
    assert "cannot write run directory" in message


def test_dry_run_prints_both_scripts_and_writes_nothing(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent")  # no Slurm is needed to look
    extra = ["--sbatch-extra", "--qos=high"]
    assert cli.run(["train", "--engine", "slurm", "--actor-hosts", "5", "--dry-run", *extra]) == 0
    printed = capsys.readouterr().out
    assert printed.count("#!/bin/bash") == 2
    assert "#SBATCH --array=0-4" in printed and "#SBATCH --qos=high" in printed
    assert str(tmp_path) in printed  # absolute: the hosts start elsewhere
    assert not list(tmp_path.iterdir())


def test_a_dry_run_of_a_local_run_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "add --engine" in refuse(capsys, "train", "--dry-run")


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


def test_only_a_slurm_run_is_scaled(capsys, run_dir, tmp_path):
    assert "is not a Slurm run" in refuse(capsys, "scale", str(run_dir.root), "--actor-hosts", "3")
    local = RunDir(tmp_path / "local")
    local.create(PRESETS["cpu"])
    assert "is not a Slurm run" in refuse(capsys, "scale", str(local.root), "--actor-hosts", "3")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--groups", "actor", "--index", "2"], "index=2, but the run has 2 actor hosts"),
        (["--groups", "actor", "--index", "-1"], "index=-1"),
        (["--groups", "actor", "learner"], "groups=actor learner"),
        (["--groups", "actor", "--run-id", "other"], "holds run c0ffee here, not other"),
    ],
)
def test_a_host_that_does_not_belong_says_its_name_and_why(
    capsys, run_dir, monkeypatch, flags, said
):
    monkeypatch.setattr("socket.gethostname", lambda: "worker7")
    message = refuse(capsys, "host", "--run-dir", str(run_dir.root), *flags)
    assert "host worker7: " in message and said in message


def test_a_host_without_the_shared_folder_says_so(capsys, tmp_path):
    message = refuse(capsys, "host", "--run-dir", str(tmp_path / "x"), "--groups", "actor")
    assert f"host {socket.gethostname()}: " in message
    assert "on a file system that all hosts share" in message


def test_a_local_run_has_no_hosts(capsys, tmp_path):
    RunDir(tmp_path).create(PRESETS["cpu"])
    assert "is a local run" in refuse(
        capsys, "host", "--run-dir", str(tmp_path), "--groups", "actor"
    )


def test_a_host_of_a_run_that_is_over_ends_at_once(capsys, run_dir):
    run_dir.stop_file.touch()
    assert cli.run(["host", "--run-dir", str(run_dir.root), "--groups", "actor"]) == 0
    assert "is over" in capsys.readouterr().out


def test_status_shows_a_host_that_could_not_join(capsys, run_dir):
    for path, host in ((run_dir.status_file, "h1"), (run_dir.host_file(0), "h2")):
        path.parent.mkdir(exist_ok=True)
        problem = None if host == "h1" else "cannot import jax"
        stored = {"state": "failed", "host": host, "pid": 1, "started": 0.0, "updated": 0.0}
        path.write_text(json.dumps({**stored, "nodes": [], "problem": problem}))
    assert cli.run(["status", str(run_dir.root)]) == 0
    assert "host h2 failed: cannot import jax" in capsys.readouterr().out
    assert cli.run(["status", str(run_dir.root), "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert hosts[1] == {"host": "h2", "state": "failed", "problem": "cannot import jax"}


def test_a_damaged_engine_file_is_refused(run_dir):
    run_dir.engine_file.write_text('{"engine": "slurm"}')
    with pytest.raises(InputError, match=r"engine\.json cannot be read"):
        load_engine(run_dir)


def test_resuming_keeps_the_engine_and_its_options(run_dir):
    EngineRecord("slurm", "c0ffee", HostsOptions(5, 3), SlurmOptions(account="lab")).save(run_dir)
    flags = parse_train(["--resume", "--run-dir", str(run_dir.root)])
    assert flags.request.engine == "slurm"
    assert (flags.hosts.actor_hosts, flags.slurm.account) == (5, "lab")


@pytest.fixture
def signals():
    """Puts back the handlers that a host takes over."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    handlers = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
def test_a_host_that_was_replaced_kills_its_nodes_without_a_last_checkpoint(
    run_dir, tmp_path, monkeypatch
):
    up, asked = tmp_path / "up", tmp_path / "asked"
    code = f"""
import pathlib, signal, time
def save(*_):
    time.sleep(0.5)
    pathlib.Path({str(asked)!r}).touch()
signal.signal(signal.SIGTERM, save)
pathlib.Path({str(up)!r}).touch()
while True: time.sleep(0.05)
"""
    spec = NodeSpec(
        NodeName("learner", 0), [sys.executable, "-S", "-c", code], dict(os.environ), tmp_path / "x"
    )
    monkeypatch.setattr(host_nodes, "_node_spec", lambda run_dir, name: spec)
    outcome = host_nodes.supervise_nodes(
        run_dir.load_config(),
        run_dir,
        [spec.name],
        status_file=run_dir.status_file,
        stop=StopSignals(),
        taken_over=up.exists,
    )
    assert outcome is Outcome.STOPPED
    assert not asked.exists()


def test_nodes_do_not_ask_a_proxy_for_the_way_to_another_host(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert "http_proxy" not in host_nodes.node_environment("actor")
    assert "http_proxy" not in host_nodes.node_environment("learner")


class Clock:
    """Time that passes only when someone sleeps, and a learner's host that may live meanwhile."""

    def __init__(self, status_file: pathlib.Path, *, learner_lives: bool):
        self.now = 0.0
        self._status_file, self._learner_lives = status_file, learner_lives

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 30 * seconds
        if self._learner_lives:
            self._status_file.write_text(json.dumps({"updated": self.now}))


@pytest.mark.parametrize(
    ("learner_lives", "error"),
    [(True, preflight.PreflightError), (False, preflight.NoLearnerError)],
)
def test_a_replay_that_cannot_be_reached_is_told_from_one_that_is_not_there(
    run_dir, monkeypatch, learner_lives, error
):
    clock = Clock(run_dir.status_file, learner_lives=learner_lives)
    monkeypatch.setattr(preflight, "time", clock)
    if learner_lives:
        clock.sleep(1.0)
    with pytest.raises(error, match="no address"):
        preflight.wait_for_replay(run_dir)
    limit = preflight._REPLAY_SECONDS if learner_lives else preflight._LEARNER_SECONDS
    assert clock.now == pytest.approx(limit, abs=120.0)
