"""The run that a profile starts."""

import subprocess
import sys

import psutil

from tests.launch.live_run import ROOT

SECONDS = 60.0  # bounds a hang
KILLED = """
import os, pathlib, signal, sys
from launch.profile.timed_run import _running
with _running(["sleep", "1000"], pathlib.Path(os.devnull)) as run:
    print(run.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_profile_that_is_killed_leaves_no_run_behind():
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == -9, done.stderr
    try:
        run = psutil.Process(int(done.stdout))
    except psutil.NoSuchProcess:
        return
    assert psutil.wait_procs([run], timeout=SECONDS)[1] == []
