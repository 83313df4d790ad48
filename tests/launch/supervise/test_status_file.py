"""Whether a run is alive, from what its supervisor wrote, whatever clocks say."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from launch.machine.host_name import this_host
from launch.node_status import NodeStatus
from launch.run_dir import RunDir
from launch.supervise import status_file
from launch.supervise.status_file import read_hosts, read_status, write_host_status

NODE = NodeStatus(role="actor", index=0, host="h", state="x", restarts=1)


@pytest.fixture
def run_dir(tmp_path):
    return RunDir(tmp_path)


def rewrite(run_dir: RunDir, **values: object) -> None:
    stored = json.loads(run_dir.status_file.read_text())
    run_dir.status_file.write_text(json.dumps({**stored, **values}))


class Waiting:
    """Time that passes only while the reader sleeps; something may happen meanwhile."""

    def __init__(self, meanwhile: Callable[[], object]):
        self.slept = 0.0
        self._meanwhile = meanwhile

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._meanwhile()


@pytest.fixture
def waiting(monkeypatch):
    def wait_with(meanwhile: Callable[[], object] = lambda: None) -> Waiting:
        clock = Waiting(meanwhile)
        monkeypatch.setattr(status_file, "time", clock)
        return clock

    return wait_with


def test_what_is_written_is_read(run_dir, waiting):
    clock = waiting()
    assert read_status(run_dir) is None
    nodes = [NODE, dataclasses.replace(NODE, index=1, pid=7, progress_age_seconds=0.5)]
    write_host_status(run_dir.status_file, "running", started=1.0, nodes=nodes)
    status = read_status(run_dir)
    assert (status.alive, status.state, status.nodes) == (True, "running", nodes)
    assert (status.host, status.pid) == (this_host(), os.getpid())
    assert (status.problem, status.silent_seconds) == (None, None)
    assert clock.slept == 0.0


@pytest.mark.parametrize("state", ["stopped", "finished", "failed", "preflight"])
def test_a_supervisor_that_has_ended_is_not_alive_and_not_dead(run_dir, state):
    write_host_status(run_dir.status_file, state, started=1.0, problem="no GPU")
    status = read_status(run_dir)
    assert (status.alive, status.state, status.problem) == (False, state, "no GPU")
    assert 0.0 <= status.silent_seconds < 3600.0


@pytest.mark.parametrize("state", ["running", "stopping"])
def test_a_supervisor_that_is_gone_is_dead(run_dir, state, waiting):
    clock = waiting()
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    write_host_status(run_dir.status_file, state, started=1.0)
    rewrite(run_dir, pid=child.pid)
    assert read_status(run_dir)[:2] == (False, "dead")
    assert clock.slept == 0.0


def test_a_process_that_was_given_the_number_of_a_dead_supervisor_is_not_it(run_dir, waiting):
    waiting()
    write_host_status(run_dir.status_file, "running", started=1.0)
    rewrite(run_dir, pid_start="1")
    assert read_status(run_dir)[:2] == (False, "dead")


CLOCKS = [-7200.0, -300.0, 0.0, 300.0, 7200.0]


@pytest.mark.parametrize("skew_seconds", CLOCKS)
def test_a_supervisor_elsewhere_is_alive_while_it_writes_whatever_its_clock(
    run_dir, waiting, skew_seconds
):
    def write() -> None:
        write_host_status(run_dir.status_file, "running", started=1.0)
        rewrite(run_dir, machine="another", updated=time.time() + skew_seconds)

    write()
    clock = waiting(write)
    assert read_status(run_dir)[:2] == (True, "running")
    assert clock.slept < 1.0


@pytest.mark.parametrize("skew_seconds", CLOCKS)
def test_a_supervisor_elsewhere_that_writes_no_more_is_dead_whatever_its_clock(
    run_dir, waiting, skew_seconds
):
    write_host_status(run_dir.status_file, "running", started=1.0)
    rewrite(run_dir, machine="another", updated=time.time() + skew_seconds)
    clock = waiting()
    assert read_status(run_dir)[:2] == (False, "dead")
    assert clock.slept == pytest.approx(status_file._WATCH_SECONDS, abs=1.0)


def test_a_supervisor_elsewhere_that_ends_while_it_is_watched_has_ended(run_dir, waiting):
    write_host_status(run_dir.status_file, "stopping", started=1.0)
    rewrite(run_dir, machine="another")
    waiting(lambda: write_host_status(run_dir.status_file, "stopped", started=1.0))
    assert read_status(run_dir)[:2] == (False, "stopped")


def test_all_hosts_are_watched_at_once_and_those_that_never_came_up_left_out(run_dir, waiting):
    run_dir.host_file(1).parent.mkdir()
    for path in (run_dir.status_file, run_dir.host_file(1), run_dir.host_file(2)):
        write_host_status(path, "running", started=1.0)
        path.write_text(json.dumps({**json.loads(path.read_text()), "machine": "another"}))
    clock = waiting(lambda: write_host_status(run_dir.host_file(1), "running", started=1.0))
    learner, actors = read_hosts(run_dir, 4)
    assert learner.state == "dead"
    assert [host.state for host in actors] == ["running", "dead"]
    assert clock.slept < status_file._WATCH_SECONDS + 1.0


DAMAGED = [
    "",
    "[]",
    "{}",
    "\0\0",
    '{"state": "running"}',
    '{"state": "running", "host": "h", "pid"',
]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_status_is_unknown_and_says_why(run_dir, text, waiting):
    run_dir.status_file.write_text(text)
    waiting()
    status = read_status(run_dir)
    assert (status.alive, status.state) == (False, "unknown")
    assert "status.json cannot be read" in status.problem


def test_a_damaged_status_that_a_live_supervisor_replaces_is_read(run_dir, waiting):
    run_dir.status_file.write_text(DAMAGED[-1])
    waiting(lambda: write_host_status(run_dir.status_file, "running", started=1.0))
    assert read_status(run_dir)[:2] == (True, "running")
