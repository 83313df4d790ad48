"""`vantage status RUN` and `vantage stop RUN`: look at a run, or stop it, from another terminal."""

import dataclasses
import json
import os
import socket
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from launch.errors import ExitCode, InputError
from launch.monitor.terminal import format_line
from launch.monitor.view import RunView, Snapshot
from launch.run_dir import RunDir
from report.metrics_file import read_rows

_SILENT_SECONDS = 60.0
_TAIL_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class RunStatus:
    """What the supervisor last wrote, and whether it still lives."""

    alive: bool
    state: str
    host: str
    pid: int
    nodes: list[dict[str, Any]]


def read_status(run_dir: RunDir) -> RunStatus | None:
    """None if the run was never started."""
    try:
        stored = json.loads(run_dir.status_file.read_text())
    except FileNotFoundError:
        return None
    alive = stored["state"] in ("running", "stopping") and _supervisor_alive(stored)
    state = stored["state"] if alive or stored["state"] not in ("running", "stopping") else "dead"
    return RunStatus(alive, state, stored["host"], stored["pid"], stored["nodes"])


def status(run_dir: RunDir, *, as_json: bool) -> ExitCode:
    """Prints the state of a run and of each of its nodes."""
    config = run_dir.load_config()
    current = read_status(run_dir)
    view = RunView(
        total_frames=config.frames, target_samples_per_insert=config.replay.samples_per_insert
    )
    if run_dir.metrics_file.exists():
        view.add(list(read_rows(run_dir.metrics_file, tail_bytes=_TAIL_BYTES)))
    snapshot = view.snapshot()
    if as_json:
        print(json.dumps(_as_json(run_dir, current, snapshot)))
    else:
        _print(run_dir, current, snapshot)
    return ExitCode.DONE


def stop(run_dir: RunDir, *, timeout_seconds: float) -> ExitCode:
    """Asks the run to drain, checkpoint and stop; returns when it has."""
    run_dir.load_config()
    current = read_status(run_dir)
    if current is None or not current.alive:
        raise InputError(f"'{run_dir.root}' is not running; nothing to stop")
    run_dir.stop_file.touch()
    deadline = time.monotonic() + timeout_seconds
    while current is not None and current.alive:
        if time.monotonic() > deadline:
            raise InputError(
                f"'{run_dir.root}' is still stopping after {timeout_seconds:.0f} s "
                f"(pid {current.pid} on {current.host}); look at its logs, or wait with --timeout"
            )
        time.sleep(0.2)
        current = read_status(run_dir)
    print(f"{run_dir.root}: {'gone' if current is None else current.state}")
    return ExitCode.DONE


def _supervisor_alive(stored: dict[str, Any]) -> bool:
    if stored["host"] != socket.gethostname():
        # Another machine's process: all we can see is whether it still writes.
        return time.time() - stored["updated"] < _SILENT_SECONDS
    try:
        os.kill(stored["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A pid may be given to someone else; ours was there before it first wrote.
    return time.time() - stored["updated"] < _SILENT_SECONDS


def _as_json(run_dir: RunDir, current: RunStatus | None, snapshot: Snapshot) -> dict[str, Any]:
    evaluation = snapshot.evaluation
    return {
        "run": str(run_dir.root),
        "state": "not started" if current is None else current.state,
        "nodes": [] if current is None else current.nodes,
        "frames": snapshot.frames,
        "total_frames": snapshot.total_frames,
        "frames_per_second": snapshot.frames_per_second,
        "updates": snapshot.updates,
        "updates_per_second": snapshot.updates_per_second,
        "evaluation": None if evaluation is None else evaluation._asdict(),
    }


def _print(run_dir: RunDir, current: RunStatus | None, snapshot: Snapshot) -> None:
    console = Console()
    console.print(f"{run_dir.root}: {'not started' if current is None else current.state}")
    if current is not None:
        table = Table("role", "index", "host", "pid", "state", "restarts", box=None)
        for node in current.nodes:
            cells = (node[key] for key in ("role", "index", "host", "pid", "state", "restarts"))
            table.add_row(*("-" if cell is None else str(cell) for cell in cells))
        console.print(table)
    console.print(format_line(snapshot), soft_wrap=True)
