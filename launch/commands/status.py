"""`vantage status RUN` and `vantage stop RUN`: look at a run, or stop it, from another terminal."""

import dataclasses
import json
import os
import pathlib
import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from launch.engines.record import EngineRecord, load_engine
from launch.engines.slurm import commands
from launch.engines.slurm import control as slurm_control
from launch.engines.slurm.submit import jobs_of
from launch.errors import ExitCode, InputError
from launch.host_name import this_host
from launch.monitor.snapshot import RunView, Snapshot
from launch.monitor.terminal import format_line
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
    problem: str | None  # why the host could not join


def read_status(run_dir: RunDir) -> RunStatus | None:
    """What the run's supervisor wrote, the learner host's; None if the run was never started."""
    return _read_supervisor(run_dir.status_file)


def read_actor_hosts(run_dir: RunDir, record: EngineRecord | None) -> list[RunStatus]:
    """What the supervisors of the actor hosts wrote; those that never came up are left out."""
    indices = range(0 if record is None else record.hosts.actor_hosts)
    found = [_read_supervisor(run_dir.host_file(index)) for index in indices]
    return [status for status in found if status is not None]


def _read_supervisor(status_file: pathlib.Path) -> RunStatus | None:
    try:
        stored = json.loads(status_file.read_text())
        alive = stored["state"] in ("running", "stopping") and _supervisor_alive(stored)
        ended = stored["state"] not in ("running", "stopping")
        return RunStatus(
            alive=alive,
            state=stored["state"] if alive or ended else "dead",
            host=stored["host"],
            pid=stored["pid"],
            nodes=stored["nodes"],
            problem=stored.get("problem"),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{status_file} cannot be read: {error!r}") from None


def status(run_dir: RunDir, *, as_json: bool) -> ExitCode:
    """Prints the state of a run and of each of its nodes."""
    config = run_dir.load_config()
    current, record = read_status(run_dir), load_engine(run_dir)
    hosts = ([] if current is None else [current]) + read_actor_hosts(run_dir, record)
    jobs = _read_jobs(record)
    view = RunView(
        total_frames=config.frames, target_samples_per_insert=config.replay.samples_per_insert
    )
    if run_dir.metrics_file.exists():
        view.add(list(read_rows(run_dir.metrics_file, tail_bytes=_TAIL_BYTES)))
    snapshot = view.snapshot()
    if as_json:
        print(json.dumps(_as_json(run_dir, hosts, jobs, snapshot)))
    else:
        _print(run_dir, hosts, jobs, snapshot)
    return ExitCode.DONE


def stop(run_dir: RunDir, *, timeout_seconds: float) -> ExitCode:
    """Asks the run to drain, checkpoint and stop; returns when it has."""
    run_dir.load_config()
    record = load_engine(run_dir)
    if record is not None and record.engine == "slurm":
        return slurm_control.stop(run_dir, record, timeout_seconds=timeout_seconds)
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


def _read_jobs(record: EngineRecord | None) -> list[commands.Job] | None:
    """The run's jobs in the queue; None where there is no queue, or none to be asked."""
    if record is None or record.engine != "slurm":
        return None
    try:
        return jobs_of(record)
    except InputError as error:
        # The files of the run still tell the rest.
        print(f"jobs unknown: {error}", file=sys.stderr)
        return None


def _supervisor_alive(stored: dict[str, Any]) -> bool:
    if stored["host"] != this_host():
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


def _as_json(
    run_dir: RunDir,
    hosts: list[RunStatus],
    jobs: list[commands.Job] | None,
    snapshot: Snapshot,
) -> dict[str, Any]:
    evaluation = snapshot.evaluation
    return {
        "run": str(run_dir.root),
        "state": _state(hosts),
        "jobs": None if jobs is None else [job._asdict() for job in jobs],
        "hosts": [
            {"host": host.host, "state": host.state, "problem": host.problem} for host in hosts
        ],
        "nodes": [node for host in hosts for node in host.nodes],
        "frames": snapshot.frames,
        "total_frames": snapshot.total_frames,
        "frames_per_second": snapshot.frames_per_second,
        "updates": snapshot.updates,
        "updates_per_second": snapshot.updates_per_second,
        "params_age_seconds": _params_age(snapshot),
        "evaluation": None if evaluation is None else evaluation._asdict(),
    }


def _print(
    run_dir: RunDir,
    hosts: list[RunStatus],
    jobs: list[commands.Job] | None,
    snapshot: Snapshot,
) -> None:
    console = Console()
    console.print(f"{run_dir.root}: {_state(hosts)}")
    if jobs is not None:
        _print_jobs(console, jobs)
    for host in hosts:
        if host.problem is not None:
            console.print(f"host {host.host} {host.state}: {host.problem}", soft_wrap=True)
    if any(host.nodes for host in hosts):
        table = Table("role", "index", "host", "pid", "state", "restarts", box=None)
        for host in hosts:
            for node in host.nodes:
                # Of a host that fell silent nobody knows what its nodes do.
                state = node["state"] if host.state != "dead" else "lost"
                cells = (*(node[key] for key in ("role", "index", "host", "pid")), state)
                shown = ("-" if cell is None else str(cell) for cell in (*cells, node["restarts"]))
                table.add_row(*shown)
        console.print(table)
    age = _params_age(snapshot)
    parameters = "" if age is None else f" | parameters {age:.1f} s old"
    console.print(f"{format_line(snapshot)}{parameters}", soft_wrap=True)


def _print_jobs(console: Console, jobs: list[commands.Job]) -> None:
    if not jobs:
        console.print("no jobs in the queue")
        return
    table = Table("job", "name", "state", "host", "reason", box=None)
    for job in jobs:
        reason = "-" if job.reason == "None" else job.reason
        table.add_row(job.job_id, job.name, job.state.lower(), job.host or "-", reason)
    console.print(table)


def _state(hosts: list[RunStatus]) -> str:
    """That of the learner's host, which is first, or the only one."""
    return hosts[0].state if hosts else "not started"


def _params_age(snapshot: Snapshot) -> float | None:
    """Age of the oldest parameters any actor plays with."""
    ages = (actor.params_age_seconds for actor in snapshot.actors)
    return max((age for age in ages if age is not None), default=None)
