"""A node as a process of its own."""

import pathlib
import subprocess
import sys

import pytest

from launch.errors import InputError

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
