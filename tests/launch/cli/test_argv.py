"""Flags the parser refuses, or that the engine would ignore; defaults of a resumed run."""

import pytest

from launch.cli.argv import parse_train
from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord


@pytest.mark.parametrize(
    "flags", [["--algorithm", "sarsa"], ["--network", "resnet"], ["--frames", "many"], ["--speed"]]
)
def test_a_bad_flag_is_refused_by_the_parser(refuse, tmp_path, monkeypatch, flags):
    monkeypatch.chdir(tmp_path)
    assert flags[-1].lstrip("-") in refuse("train", *flags)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--engine", "slurm", "--actors", "64"], "give --actor-hosts and --actors-per-host"),
        (["--actor-hosts=8"], "--actor-hosts needs --engine slurm or hosts, not local"),
        (["--engine=hosts", "--account=lab"], "--account needs --engine slurm, not hosts"),
    ],
)
def test_a_flag_that_the_engine_would_ignore_is_refused(refuse, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    assert said in refuse("train", *flags)
    assert not list(tmp_path.iterdir())


def test_resuming_keeps_the_engine_and_its_options(hosts_run):
    EngineRecord("slurm", "c0ffee", HostsOptions(5, 3), SlurmOptions(account="lab")).save(hosts_run)
    flags = parse_train(["--resume", "--run-dir", str(hosts_run.root)])
    assert flags.request.engine == "slurm"
    assert (flags.hosts.actor_hosts, flags.slurm.account) == (5, "lab")
