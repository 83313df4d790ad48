"""Nodes that are forked, by a real server that has imported all that nodes need."""

import contextlib
import functools
import json
import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator

import psutil
import pytest
import reverb

from launch import heartbeat
from launch.layout import NodeName
from launch.supervise import fork_server
from launch.supervise.fork_server import ForkedProcess, ForkServer
from launch.supervise.fork_server_entry import Target
from launch.supervise.namespace import NoNamespaceError, make_namespace
from launch.supervise.node_process import NodeSpec
from launch.supervise.nodes_on_host import node_environment
from launch.supervise.supervisor import Outcome, StopStep, Supervisor

MODULE = "tests.launch.supervise.forked_node"
WAIT_SECONDS = 60.0


class Forked:
    """A fork, its log, and the reading end of its heartbeat."""

    def __init__(self, forks: ForkServer, folder: pathlib.Path, *arguments: str):
        self.log = folder / f"{time.monotonic_ns()}.log"
        self.heart, writing = os.pipe()
        with self.log.open("wb") as log:
            self.process: ForkedProcess = forks.fork(
                Target("actor-7", MODULE, arguments),
                variables={"TOLD": "this"},
                log=log.fileno(),
                pipe=writing,
            )
        os.close(writing)

    def wait(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not what():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)

    def wait_until_up(self) -> dict:
        """What it says of itself."""
        self.wait(lambda: self.process.poll() is not None or "\n" in self.log.read_text())
        return json.loads(self.log.read_text().splitlines()[0])

    def wait_for_end(self) -> int:
        self.wait(lambda: self.process.poll() is not None)
        os.close(self.heart)
        return self.process.returncode


@contextlib.contextmanager
def fork_server_of(*arguments: object, **variables: str) -> Iterator[ForkServer]:
    forks = ForkServer({**node_environment("actor"), **variables}, *arguments)
    try:
        yield forks
    finally:
        forks.close()


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    with fork_server_of(SHARED="that") as server:
        yield server


def server_of(fork: Forked) -> psutil.Process:
    return psutil.Process(fork.process.pid).parent()


def test_a_fork_is_as_if_it_were_a_program_of_its_own(forks, tmp_path):
    fork = Forked(forks, tmp_path, "wait")
    said = fork.wait_until_up()
    assert said["pid"] == said["session"] == fork.process.pid
    assert said["name"] == "actor-7" and said["child_signal_is_default"]
    assert said["network"] == os.readlink("/proc/self/ns/net")
    heart = int(said["environment"][heartbeat.VARIABLE])
    assert sorted(said["files"]) == [0, 1, 2, heart]
    assert said["environment"]["SHARED"] == "that" and said["environment"]["TOLD"] == "this"
    assert fork.process.poll() is None
    fork.process.send_signal(signal.SIGTERM)
    assert fork.wait_for_end() == -signal.SIGTERM


def test_what_is_forked_has_one_thread(forks, tmp_path):
    # A fork has no others than the one that forked it, and the locks as the others held them.
    fork = Forked(forks, tmp_path, "wait")
    said = fork.wait_until_up()
    assert server_of(fork).num_threads() == said["threads"] == 1 and said["imported"]
    fork.process.send_signal(signal.SIGKILL)
    assert fork.wait_for_end() == -signal.SIGKILL


@pytest.mark.parametrize(("end", "code"), [(("exit", "0"), 0), (("exit", "76"), 76)])
def test_its_exit_code_is_told(forks, tmp_path, end, code):
    assert Forked(forks, tmp_path, *end).wait_for_end() == code


def test_an_exception_is_in_its_log(forks, tmp_path):
    fork = Forked(forks, tmp_path, "raise")
    assert fork.wait_for_end() == 1
    assert fork.log.read_text().splitlines()[-1] == "ValueError: as it was told"


def test_its_heart_stops_with_it(forks, tmp_path):
    fork = Forked(forks, tmp_path, "exit", "0")
    assert os.read(fork.heart, 1) == b""
    fork.wait_for_end()


def test_forks_of_one_process_write_items_of_their_own(forks, tmp_path):
    # A generator of keys that was there before the fork would give all of them the same ones.
    table = reverb.Table.queue("table", 100)
    server = reverb.Server([table])
    try:
        writers = [Forked(forks, tmp_path, "insert", f"localhost:{server.port}") for _ in range(3)]
        assert [writer.wait_for_end() for writer in writers] == [0, 0, 0]
        client = reverb.Client(f"localhost:{server.port}")
        keys = {next(iter(client.sample("table")))[0].info.key for _ in range(9)}
        assert len(keys) == 9
    finally:
        server.stop()


def test_a_fork_lives_in_the_runs_network(tmp_path):
    try:
        namespace = make_namespace()
    except NoNamespaceError as error:
        pytest.skip(f"no namespaces here: {error}")
    with namespace, fork_server_of(namespace) as forks:
        first, second = (Forked(forks, tmp_path, "wait") for _ in range(2))
        networks = {fork.wait_until_up()["network"] for fork in (first, second)}
        assert len(networks) == 1 and os.readlink("/proc/self/ns/net") not in networks
        assert first.wait_until_up()["files"] == second.wait_until_up()["files"]
        # Of a server that is told to end, nothing is left.
        family = [server_of(first), *server_of(first).children()]
        forks.close()
        assert psutil.wait_procs(family, timeout=WAIT_SECONDS)[1] == []
        assert first.wait_for_end() == second.wait_for_end() == -signal.SIGKILL


def test_what_is_asked_before_the_server_is_ready_is_done_then(tmp_path):
    with fork_server_of() as forks:
        told_to_stop, fork = Forked(forks, tmp_path, "wait"), Forked(forks, tmp_path, "exit", "3")
        assert told_to_stop.process.pid is None and told_to_stop.process.poll() is None
        told_to_stop.process.send_signal(signal.SIGTERM)
        assert told_to_stop.wait_for_end() == -signal.SIGTERM
        assert fork.wait_for_end() == 3
        # The next one comes from the same server; one that is killed with it, from a new one.
        fork = Forked(forks, tmp_path, "wait")
        fork.wait_until_up()
        server = server_of(fork)
        server.kill()
        assert fork.wait_for_end() == -signal.SIGKILL
        assert fork.log.read_text().splitlines()[-1] == (
            "the process that nodes are forked from has ended: killed"
        )
        unlucky = Forked(forks, tmp_path, "wait")
        assert unlucky.process.pid is None
        unlucky.process.send_signal(signal.SIGKILL)
        assert unlucky.process.poll() == -signal.SIGKILL
        os.close(unlucky.heart)


def test_a_server_that_hangs_does_not_keep_what_was_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(fork_server, "_END_SECONDS", 1.0)
    with fork_server_of() as forks:
        fork = Forked(forks, tmp_path, "wait")
        fork.wait_until_up()
        server = server_of(fork)
        server.suspend()

        def ended_by_killing() -> bool:
            fork.process.send_signal(signal.SIGKILL)
            return fork.process.poll() is not None

        fork.wait(ended_by_killing)
        assert fork.wait_for_end() == -signal.SIGKILL
        assert not server.is_running()


def test_a_server_that_cannot_import_says_why_in_the_nodes_log(tmp_path):
    (tmp_path / "jax.py").write_text("raise ImportError('no such accelerator')")
    with fork_server_of(PYTHONPATH=str(tmp_path)) as forks:
        fork = Forked(forks, tmp_path, "wait")
        assert fork.wait_for_end() == -signal.SIGKILL
        assert fork.log.read_text().strip() == (
            "the process that nodes are forked from has ended: ImportError: no such accelerator"
        )


def test_the_supervisor_runs_forks_as_it_runs_programs(forks, tmp_path):
    ends = {"main": ("exit", "0"), "a": ("wait",)}
    specs = [
        NodeSpec(
            NodeName(role, 0),
            functools.partial(forks.fork, Target(role, MODULE, end)),
            tmp_path / f"{role}.log",
            stuck_seconds=WAIT_SECONDS,
        )
        for role, end in ends.items()
    ]
    events: list[str] = []
    pids: set[int | None] = set()
    steps = [StopStep(frozenset(ends), 10.0)]
    deadline = time.monotonic() + WAIT_SECONDS
    supervisor = Supervisor(
        specs,
        finishing_role="main",
        stop_steps=steps,
        finish_steps=steps,
        restart_variable="RESTART",
        status_file=tmp_path / "status.json",
        end_asked=lambda: Outcome.LOST if time.monotonic() > deadline else None,
        on_tick=lambda nodes: pids.update(node.pid for node in nodes),
        on_event=events.append,
    )
    assert supervisor.run() is Outcome.FINISHED
    assert events == []
    assert not any(psutil.pid_exists(pid) for pid in pids - {None})
    assert json.loads((tmp_path / "a.log").read_text())["environment"]["RESTART"] == "0"
