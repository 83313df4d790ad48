"""A run over two hosts, both on this machine: through the gate, and through nothing else.

The actor host sees nothing of the run directory: it is given its bundle, as over ssh.
"""

import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable
from typing import IO

import portpicker
import psutil
import pytest
import reverb

from launch.cli import main as cli
from launch.engines.options import LEARNER_GROUPS
from launch.invocation import vantage_command
from launch.run_dir import RunDir
from launch.supervise.namespace import NoNamespaceError, make_namespace
from report.metrics_file import read_rows
from reverb_server.client import SERVER_AWAY
from tests.launch.listening import listening_ports
from tests.launch.tiny_run import TINY_FLAGS

ROOT = pathlib.Path(__file__).parents[3]
WAIT_SECONDS = 400.0  # bounds a hang
FLAGS = (*TINY_FLAGS, "--frames=100000000", "--envs-per-actor=2", "--updates-per-dispatch=1")


class Hosts:
    """The learner's host and an actor host."""

    def __init__(self, run_dir: RunDir):
        self.run_dir = run_dir
        self.output = run_dir.root.with_name("actor-host.log")
        learner = ("--run-dir", str(run_dir.root), "--groups", *LEARNER_GROUPS)
        self.hosts = [
            self._start(subprocess.DEVNULL, *learner),
            self._start(run_dir.bundle(0).open(), "--bundle", "-"),
        ]

    def _start(self, stdin: int | IO[str], *flags: str) -> subprocess.Popen:
        with self.output.open("a") as output:
            return subprocess.Popen(
                vantage_command("host", *flags),
                cwd=ROOT,
                stdin=stdin,
                stdout=output if "--bundle" in flags else subprocess.DEVNULL,
            )

    def node(self, name: str) -> dict:
        """A node as its supervisor last wrote it; empty before it did."""
        for path in (self.run_dir.status_file, self.run_dir.host_file(0)):
            stored = json.loads(path.read_text()) if path.exists() else {"nodes": []}
            for node in stored["nodes"]:
                if f"{node['role']}-{node['index']}" == name:
                    return node
        return {}

    def highest(self, role: str, key: str) -> float:
        path = self.run_dir.metrics_file
        rows = read_rows(path) if path.exists() else []
        return max((row.get(key, 0) for row in rows if row["role"] == role), default=0)

    def inserts(self) -> float:
        return self.highest("replay", "inserts")

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert time.monotonic() < deadline and all(h.poll() is None for h in self.hosts)
            time.sleep(0.1)

    def wait_for_progress(self) -> None:
        inserts, updates = self.inserts(), self.highest("learner", "updates")
        self.wait_for(lambda: self.inserts() > inserts + 100)
        self.wait_for(lambda: self.highest("learner", "updates") > updates)


@pytest.fixture
def hosts(tmp_path):
    run = tmp_path / "run"
    engine = ("--engine=hosts", "--actor-hosts=1", "--actors-per-host=1", f"--run-dir={run}")
    way = ("--learner-address=localhost", f"--port={portpicker.pick_unused_port()}")
    assert cli.run(["train", *engine, *way, *FLAGS]) == 0
    hosts = Hosts(RunDir(run))
    yield hosts
    for host in hosts.hosts:
        host.kill()
        host.wait(WAIT_SECONDS)


def answers(address: str) -> bool:
    """Whether a Reverb server answers there, to someone without a key."""
    try:
        reverb.Client(address).server_info(timeout=3)
    except SERVER_AWAY:
        return False
    return True


def test_a_run_over_hosts_trains_through_its_gate_and_answers_nobody_else(hosts):
    try:
        make_namespace().close()
    except NoNamespaceError as error:
        pytest.skip(f"no namespaces here: {error}")
    hosts.wait_for_progress()
    address = hosts.run_dir.read_address()
    assert address is not None and not answers(address)
    # Replay's network has its port, and is not ours.
    [port] = listening_ports(hosts.node("replay-0")["pid"])
    assert port not in listening_ports(os.getpid())
    assert hosts.run_dir.log_file("gate", 0).read_text().count("refused ") == 1

    # Whoever relays may be killed: nothing else has to start again.
    for name in ("gate-0", "tunnel-0"):
        psutil.Process(hosts.node(name)["pid"]).send_signal(signal.SIGKILL)
        hosts.wait_for(lambda name=name: hosts.node(name)["restarts"] == 1)
        hosts.wait_for_progress()
    others = ("replay-0", "learner-0", "actor-0", "monitor-0", "evaluator-0")
    assert {name: hosts.node(name)["restarts"] for name in others} == dict.fromkeys(others, 0)

    assert cli.run(["stop", str(hosts.run_dir.root)]) == 0
    # The actor host sees no stop file: it is told by the gate.
    assert [host.wait(WAIT_SECONDS) for host in hosts.hosts] == [0, 0]
    assert not hosts.run_dir.log_file("actor", 0).exists()
    assert "actor-0 | " in hosts.output.read_text()
