"""`vantage host`: hosts that do not belong to the run, and a run that is over."""

import socket

import pytest

from launch.cli import main as cli


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
    refuse, hosts_run, monkeypatch, flags, said
):
    monkeypatch.setattr("socket.gethostname", lambda: "worker7")
    message = refuse("host", "--run-dir", str(hosts_run.root), *flags)
    assert "host worker7: " in message and said in message


def test_a_host_without_the_shared_folder_says_so(refuse, tmp_path):
    message = refuse("host", "--run-dir", str(tmp_path / "x"), "--groups", "actor")
    assert f"host {socket.gethostname()}: " in message
    assert "on a file system that all hosts share" in message


def test_a_local_run_has_no_hosts(refuse, local_run):
    run = str(local_run.root)
    assert "is a local run" in refuse("host", "--run-dir", run, "--groups", "actor")


def test_a_host_of_a_run_that_is_over_ends_at_once(capsys, hosts_run):
    hosts_run.stop_file.touch()
    assert cli.run(["host", "--run-dir", str(hosts_run.root), "--groups", "actor"]) == 0
    assert "is over" in capsys.readouterr().out
