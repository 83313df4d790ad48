"""A host's share of the nodes: their environment, and a host that was replaced."""

import os
import sys

import pytest

from launch.layout import NodeName
from launch.supervise import nodes_on_host
from launch.supervise.node_process import NodeSpec
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome


@pytest.mark.usefixtures("restored_signals")
def test_a_host_that_was_replaced_kills_its_nodes_without_a_last_checkpoint(
    hosts_run, tmp_path, monkeypatch
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
        NodeName("learner", 0),
        [sys.executable, "-S", "-c", code],
        dict(os.environ),
        tmp_path / "x",
        stuck_seconds=60.0,
    )
    monkeypatch.setattr(nodes_on_host, "_node_spec", lambda config, run_dir, name: spec)
    outcome = nodes_on_host.supervise_nodes(
        hosts_run.load_config(),
        hosts_run,
        [spec.name],
        status_file=hosts_run.status_file,
        stop=StopSignals(),
        taken_over=up.exists,
    )
    assert outcome is Outcome.REPLACED
    assert not asked.exists()


def test_nodes_do_not_ask_a_proxy_for_the_way_to_another_host(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert "http_proxy" not in nodes_on_host.node_environment("actor")
    assert "http_proxy" not in nodes_on_host.node_environment("learner")
