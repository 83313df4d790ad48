"""Whether a run is alive, from what its supervisor wrote."""

import json
import os
import subprocess
import sys
import time

import pytest

from launch.errors import InputError
from launch.host_name import this_host
from launch.run_dir import RunDir
from launch.supervise.status_file import (
    SILENT_SECONDS,
    read_actor_hosts,
    read_status,
    write_host_status,
)


@pytest.fixture
def run_dir(tmp_path):
    return RunDir(tmp_path)


def rewrite(run_dir: RunDir, **values: object) -> None:
    stored = json.loads(run_dir.status_file.read_text())
    run_dir.status_file.write_text(json.dumps({**stored, **values}))


def test_what_is_written_is_read(run_dir):
    assert read_status(run_dir) is None
    node = {"role": "actor", "index": 0, "host": "h", "pid": None, "state": "x", "restarts": 1}
    nodes = [{**node, "exit_code": None}]
    write_host_status(run_dir.status_file, "running", started=1.0, nodes=nodes)
    assert read_status(run_dir) == (True, "running", this_host(), os.getpid(), nodes, None)


@pytest.mark.parametrize("state", ["stopped", "finished", "failed", "preflight"])
def test_a_supervisor_that_has_ended_is_not_alive_and_not_dead(run_dir, state):
    write_host_status(run_dir.status_file, state, started=1.0, problem="no GPU")
    status = read_status(run_dir)
    assert (status.alive, status.state, status.problem) == (False, state, "no GPU")


@pytest.mark.parametrize("state", ["running", "stopping"])
def test_a_supervisor_that_is_gone_is_dead(run_dir, state):
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    write_host_status(run_dir.status_file, state, started=1.0)
    rewrite(run_dir, pid=child.pid)
    assert read_status(run_dir)[:2] == (False, "dead")


@pytest.mark.parametrize("host", ["another", None])
def test_a_supervisor_that_fell_silent_is_dead_here_and_elsewhere(run_dir, host):
    write_host_status(run_dir.status_file, "running", started=1.0)
    rewrite(run_dir, host=host or this_host(), updated=time.time() - SILENT_SECONDS / 2)
    assert read_status(run_dir).alive
    rewrite(run_dir, updated=time.time() - 2 * SILENT_SECONDS)
    assert read_status(run_dir)[:2] == (False, "dead")


def test_actor_hosts_that_never_came_up_are_left_out(run_dir):
    run_dir.host_file(1).parent.mkdir()
    write_host_status(run_dir.host_file(1), "running", started=1.0)
    assert [host.state for host in read_actor_hosts(run_dir, 3)] == ["running"]


@pytest.mark.parametrize("text", ["", "[]", '{"state": "running"}'])
def test_a_damaged_status_is_refused_with_its_name(run_dir, text):
    run_dir.status_file.write_text(text)
    with pytest.raises(InputError, match=r"status\.json cannot be read"):
        read_status(run_dir)
