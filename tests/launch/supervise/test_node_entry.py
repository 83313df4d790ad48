"""A node as a process of its own."""

import pathlib
import subprocess
import sys

import pytest

from launch.errors import ExitCode, InputError
from launch.supervise import node_entry

ROOT = pathlib.Path(__file__).parents[3]


def test_a_node_does_not_run_in_a_folder_others_can_write_to(local_run):
    local_run.root.chmod(0o777)
    with pytest.raises(InputError, match="can be written by others"):
        local_run.check_trusted()
    done = subprocess.run(
        [sys.executable, "-m", "launch.supervise.node_entry", str(local_run.root), "monitor", "0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1 and "can be written by others" in done.stderr


class Left(Exception):
    """This process would have ended."""


def test_an_actor_starts_again_when_the_gate_is_elsewhere(local_run, monkeypatch):
    def leave(code: int) -> None:
        raise Left(code)

    # Another address appears while it sleeps for the third time.
    addresses = iter(["h1:4000", "h1:4000", "h2:4000"])
    monkeypatch.setattr(node_entry, "_exit", leave)
    monkeypatch.setattr(
        node_entry.time, "sleep", lambda seconds: local_run.publish_address(next(addresses))
    )
    local_run.publish_address("h1:4000")
    with pytest.raises(Left) as left:
        node_entry._leave_when_moved(local_run)
    assert left.value.args == (ExitCode.COME_BACK,)
    assert next(addresses, None) is None
