"""Runs over hosts: through the gate, and through nothing else."""

import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import portpicker
import psutil
import pytest

from launch.cli import main as cli
from launch.engines.options import ACTOR_GROUPS, LEARNER_GROUPS
from launch.gate import keys
from launch.gate.tunnel import OpenTunnel
from launch.invocation import vantage_command
from launch.run_dir import RunDir
from launch.supervise.node_process import REPLAY_VARIABLE
from report.metrics_file import read_rows
from tests.launch.engines import slow_loss
from tests.launch.gate.crowd import answers
from tests.launch.gate.door import HTTP2
from tests.launch.listening import listening_ports
from tests.launch.live_run import ROOT
from tests.launch.machines import Machine, NoMachinesError, make_machines
from tests.launch.no_namespaces import forbid_namespaces
from tests.launch.tiny_run import TINY_FLAGS

WAIT_SECONDS = 400.0  # bounds a hang
FLAGS = (*TINY_FLAGS, "--frames=100000000", "--envs-per-actor=2", slow_loss.FLAG)
CROWD = 10_000
MEBIBYTE = 1 << 20


class Hosts:
    """The hosts of a run that were started, whatever became of them."""

    def __init__(self, run_dir: RunDir):
        self.run_dir = run_dir
        self.alive: list[subprocess.Popen] = []
        self._output = run_dir.root.with_name("output")

    def start(
        self, groups: Sequence[str], address: str, place: Callable[..., list[str]]
    ) -> subprocess.Popen:
        """One that others reach at an address; `place` turns its command into what runs it."""
        flags = ("--run-dir", str(self.run_dir.root), "--groups", *groups, "--address", address)
        return self._spawn(place(*vantage_command("host", *flags)))

    def start_apart(self) -> subprocess.Popen:
        """The actor host, given its bundle alone, as over ssh."""
        with self.run_dir.bundle(0).open() as bundle:
            return self._spawn(vantage_command("host", "--bundle", "-"), stdin=bundle)

    def _spawn(self, command: list[str], stdin: int | IO[str] | None = None) -> subprocess.Popen:
        with self._output.open("ab") as output:
            host = subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=output, stderr=output)
        self.alive.append(host)
        return host

    def kill(self, host: subprocess.Popen) -> None:
        """Its nodes die with it."""
        self.alive.remove(host)
        host.kill()
        host.wait(WAIT_SECONDS)

    @property
    def output(self) -> str:
        """What all of them said."""
        return self._output.read_text()

    def node(self, name: str) -> dict:
        """A node as its supervisor last wrote it; empty before it did."""
        for path in (self.run_dir.status_file, self.run_dir.host_file(0)):
            stored = json.loads(path.read_text()) if path.exists() else {"nodes": []}
            for node in stored["nodes"]:
                if f"{node['role']}-{node['index']}" == name:
                    return node
        return {}

    def highest(self, role: str, key: str, since: float = 0.0) -> float:
        path = self.run_dir.metrics_file
        rows = read_rows(path) if path.exists() else []
        values = [row.get(key, 0) for row in rows if row["role"] == role and row["time"] > since]
        return max(values, default=0)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert all(host.poll() is None for host in self.alive), self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.1)

    def wait_for_progress(self) -> None:
        """From now on, actors insert and the learner learns."""
        now = time.time()
        for role, key, more in (("replay", "inserts", 100), ("learner", "updates", 1)):
            newest = functools.partial(self.highest, role, key, now)
            self.wait_for(lambda newest=newest: newest() > 0)
            first = newest()
            self.wait_for(lambda newest=newest, more=first + more: newest() >= more)


@contextlib.contextmanager
def planned(run: pathlib.Path, *flags: str) -> Iterator[Hosts]:
    """Hosts of a run of one actor; none is started yet."""
    engine = ("--engine=hosts", "--actor-hosts=1", "--actors-per-host=1", f"--run-dir={run}")
    assert cli.run(["train", *engine, *flags, *FLAGS]) == 0
    hosts = Hosts(RunDir(run))
    try:
        yield hosts
    finally:
        for host in list(hosts.alive):
            hosts.kill(host)


@pytest.fixture
def hosts(tmp_path) -> Iterator[Hosts]:
    with planned(tmp_path / "run") as hosts:
        yield hosts


@pytest.fixture
def machines() -> Iterator[list[Machine]]:
    try:
        with make_machines(4) as machines:
            yield machines
    except NoMachinesError as error:
        pytest.skip(f"no namespaces here: {error}")


def test_a_run_over_hosts_trains_through_its_gate_whoever_else_comes(hosts, machines):
    first, second, player, stranger = machines
    learner = hosts.start(LEARNER_GROUPS, first.address, first.command)
    hosts.start(ACTOR_GROUPS, player.address, player.command)
    hosts.wait_for_progress()
    only_the_gate_listens(hosts, first, learner)
    other_users_cannot_reach_the_tunnel(hosts)

    a_crowd_is_refused(hosts, stranger)
    relays_are_killed(hosts)
    others = ("replay-0", "learner-0", "actor-0", "monitor-0", "evaluator-0")
    assert {name: hosts.node(name)["restarts"] for name in others} == dict.fromkeys(others, 0)

    # The machine of the learner is lost, and another one takes its place.
    hosts.kill(learner)
    learner = hosts.start(LEARNER_GROUPS, second.address, second.command)
    hosts.wait_for_progress()
    only_the_gate_listens(hosts, second, learner)

    assert cli.run(["stop", str(hosts.run_dir.root)]) == 0
    assert [host.wait(WAIT_SECONDS) for host in hosts.alive] == [0, 0]


def only_the_gate_listens(hosts: Hosts, machine: Machine, learner: subprocess.Popen) -> None:
    """On the learner's machine; replay's port is in another network."""
    address = hosts.run_dir.read_address()
    assert address is not None and address.startswith(f"{machine.address}:")
    assert listening_ports(learner.pid) == {int(address.rpartition(":")[2])}
    assert len(listening_ports(hosts.node("replay-0")["pid"])) == 1


def other_users_cannot_reach_the_tunnel(hosts: Hosts) -> None:
    """Nor could they if they knew where it is."""
    if os.geteuid() != 0:
        return  # only root can be someone else
    address = psutil.Process(hosts.node("actor-0")["pid"]).environ()[REPLAY_VARIABLE]
    is_there = ["test", "-S", address.removeprefix("unix:")]
    assert subprocess.run(is_there, check=False).returncode == 0
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    assert subprocess.run(is_there, check=False, **nobody).returncode == 1


def a_crowd_is_refused(hosts: Hosts, stranger: Machine) -> None:
    """However many come, and whether they read or not: training goes on, and a line says who."""
    gate = psutil.Process(hosts.node("gate-0")["pid"])
    before = gate.memory_info().rss
    files = (str(hosts.run_dir.address_file), str(hosts.run_dir.keys / keys.actor_key(0)))
    module = "tests.launch.gate.crowd"
    crowd = subprocess.Popen(
        stranger.command(sys.executable, "-m", module, *files, str(CROWD)),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert crowd.stdout is not None and crowd.stdout.readline() == "there\n"
        crowd.send_signal(signal.SIGSTOP)
        hosts.wait_for_progress()
        assert gate.memory_info().rss < before + 64 * MEBIBYTE
    finally:
        crowd.kill()
        crowd.wait(WAIT_SECONDS)
    said = hosts.run_dir.log_file("gate", 0).read_text()
    assert said.count("refused ") == said.count(f"refused {stranger.address}: ") == 1


def relays_are_killed(hosts: Hosts) -> None:
    """Nothing else has to start again."""
    for name in ("gate-0", "tunnel-0"):
        psutil.Process(hosts.node(name)["pid"]).send_signal(signal.SIGKILL)
        hosts.wait_for(lambda name=name: hosts.node(name)["restarts"] == 1)
        hosts.wait_for_progress()


def test_where_there_can_be_no_namespace_the_gate_asks_for_keys_and_a_line_says_what_is_open(hosts):
    hosts.start(LEARNER_GROUPS, "localhost", forbid_namespaces)
    hosts.wait_for(lambda: hosts.node("gate-0").get("state") == "running")
    key, address_file = hosts.run_dir.keys / keys.actor_key(0), hosts.run_dir.address_file
    with OpenTunnel(key, address_file) as tunnel:
        hosts.wait_for(lambda: answers(tunnel.address))
    assert not answers(address_file.read_text())
    # The reason is lost where a connection is closed over words that nobody read.
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask_over_tls(address_file.read_text())
    [port] = re.findall(r"^vantage: warning: Reverb's port (\d+) is open to", hosts.output, re.M)
    hosts.wait_for(lambda: answers(f"localhost:{port}"))


def ask_over_tls(address: str) -> bytes:
    """What a gRPC server says first, to someone who speaks TLS and shows no key."""
    host, _, port = address.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((host, int(port)), WAIT_SECONDS) as raw,
        context.wrap_socket(raw) as stranger,
    ):
        stranger.sendall(HTTP2)
        return stranger.recv(1000)


def test_an_actor_host_that_sees_no_run_directory_is_given_its_bundle(tmp_path):
    way = ("--learner-address=localhost", f"--port={portpicker.pick_unused_port()}")
    with planned(tmp_path / "run", *way) as hosts:
        started = [
            hosts.start(LEARNER_GROUPS, "localhost", lambda *command: list(command)),
            hosts.start_apart(),
        ]
        hosts.wait_for_progress()
        assert cli.run(["stop", str(hosts.run_dir.root)]) == 0
        # It sees no stop file: it is told by the gate.
        assert [host.wait(WAIT_SECONDS) for host in started] == [0, 0]
    assert not hosts.run_dir.log_file("actor", 0).exists()
    assert "actor-0 | " in hosts.output
