"""A host's share of the nodes: their environment, and hosts that lost their run."""

import itertools
import os
import pathlib
import shutil
import sys
from collections.abc import Callable

import pytest

from launch.layout import NodeName
from launch.run_dir import RunDir
from launch.supervise import nodes_on_host
from launch.supervise.node_process import NodeSpec, Program
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome


class Learner:
    """A process that stands for the learner: it notes that it is up, and that it was asked to stop.

    It takes its time to do so, as if it wrote a checkpoint.
    """

    def __init__(self, folder: pathlib.Path):
        self.up, self.asked = folder / "up", folder / "asked"
        code = f"""
import pathlib, signal, sys, time
def save(*_):
    time.sleep(0.5)
    pathlib.Path({str(self.asked)!r}).touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
pathlib.Path({str(self.up)!r}).touch()
while True: time.sleep(0.05)
"""
        self.spec = NodeSpec(
            NodeName("learner", 0),
            Program([sys.executable, "-S", "-c", code], dict(os.environ)),
            folder / "log",
            stuck_seconds=60.0,
        )


@pytest.fixture
def learner(tmp_path, monkeypatch, restored_signals):
    learner = Learner(tmp_path)
    monkeypatch.setattr(nodes_on_host, "_node_spec", lambda *_: learner.spec)
    return learner


def supervise(run_dir: RunDir, learner: Learner, taken_over: Callable[[], bool]) -> Outcome:
    return nodes_on_host.supervise_nodes(
        run_dir.load_config(),
        run_dir,
        [learner.spec.name],
        replay_address="localhost:1",
        status_file=run_dir.status_file,
        stop=StopSignals(),
        taken_over=taken_over,
    )


def test_a_host_that_was_replaced_kills_its_nodes_without_a_last_checkpoint(hosts_run, learner):
    assert supervise(hosts_run, learner, taken_over=learner.up.exists) is Outcome.REPLACED
    assert not learner.asked.exists()


@pytest.mark.parametrize("what", ["all", "the config", "moved"])
def test_a_run_whose_folder_is_gone_stops_in_order_and_says_so(hosts_run, learner, capsys, what):
    asked_after = itertools.count()

    def remove() -> bool:
        if not hosts_run.is_there():
            assert next(asked_after) < 100, "nobody noticed"
        elif learner.up.exists():
            if what == "all":
                shutil.rmtree(hosts_run.root)
            elif what == "moved":
                hosts_run.root.rename(hosts_run.root.with_name("elsewhere"))
            else:
                hosts_run.config_file.unlink()
        return False

    assert supervise(hosts_run, learner, taken_over=remove) is Outcome.LOST
    assert capsys.readouterr().out.count(f"run directory '{hosts_run.root}' is gone") == 1
    assert learner.asked.exists()
    assert hosts_run.root.exists() == (what == "the config")


def test_nodes_do_not_ask_a_proxy_for_the_way_to_another_host(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert "http_proxy" not in nodes_on_host.node_environment("actor")
    assert "http_proxy" not in nodes_on_host.node_environment("learner")
