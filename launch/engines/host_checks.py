"""Runs the checks of this host before it joins a run, and stops them when the run stops.

What this process can say by itself comes first: whether there is memory. The rest is preflight.py,
in a process of its own.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from launch import config_checks
from launch.config import Config
from launch.engines.record import EngineRecord
from launch.errors import ExitCode, InputError
from launch.layout import NodeName
from launch.run_dir import RunDir
from launch.supervise.node_process import die_with_parent
from launch.supervise.nodes_on_host import node_environment
from launch.supervise.stop_signals import StopSignals

_PREFLIGHT_SECONDS = 2 * 3600.0  # bounds a hang; the checks bound themselves far below
_TICK_SECONDS = 0.2


def check_host(
    run_dir: RunDir,
    config: Config,
    record: EngineRecord,
    names: Sequence[NodeName],
    *,
    plays: bool,
    key_file: pathlib.Path,
    stop: StopSignals,
) -> tuple[int, str]:
    """Exit code and last words of the checks, which a stop cuts short."""
    check = config_checks.check_memory if plays else config_checks.check_machine
    try:
        check(config, names)
    except InputError as error:
        return ExitCode.FAILED, str(error)
    role = "actor" if plays else "learner"
    command = [sys.executable, "-m", "launch.engines.preflight"]
    command += [str(run_dir.root), role, record.learner_devices, str(key_file)]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            env=node_environment(role),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent(os.getpid()),
        )
        stop.install(process.kill)
        _wait(process, run_dir, stop)
        output.seek(0)
        lines = output.read().strip().splitlines()
    if process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        return ExitCode.FAILED, f"the checks ended by {name}"
    return process.returncode, lines[-1] if lines else f"exit code {process.returncode}"


def _wait(process: "subprocess.Popen[bytes]", run_dir: RunDir, stop: StopSignals) -> None:
    """Returns when the process has ended: by itself, or killed because the run is over."""
    deadline = time.monotonic() + _PREFLIGHT_SECONDS
    while process.poll() is None:
        over = stop.requested or run_dir.stop_file.exists()
        if over or time.monotonic() > deadline:
            process.kill()
            process.wait(timeout=10.0)
        time.sleep(_TICK_SECONDS)
