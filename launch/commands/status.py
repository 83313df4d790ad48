"""`vantage status RUN`: the nodes of a run, its rates and its last evaluation."""

import json
import pathlib
from typing import Any

from rich.console import Console
from rich.table import Table

from launch.engines.record import EngineRecord, load_engine
from launch.engines.slurm.cluster import Job
from launch.engines.slurm.jobs import jobs_of
from launch.errors import ExitCode, InputError
from launch.monitor.follow import recent_rows
from launch.monitor.plain_view import format_line
from launch.monitor.snapshot import RunState, Snapshot
from launch.run_dir import RunDir
from launch.supervise.status_file import HostStatus, read_actor_hosts, read_status
from launch.terminal import make_console, say, warn


def status(run: pathlib.Path, as_json: bool) -> ExitCode:
    """Prints the state of a run and of each of its nodes."""
    run_dir = RunDir(run)
    config = run_dir.load_config()
    current, record = read_status(run_dir), load_engine(run_dir)
    hosts = [] if current is None else [current]
    hosts += [] if record is None else read_actor_hosts(run_dir, record.hosts.actor_hosts)
    jobs = _read_jobs(record)
    state = RunState(
        total_frames=config.frames, target_samples_per_insert=config.replay.samples_per_insert
    )
    try:
        state.add(recent_rows(run_dir.metrics_file))
    except ValueError as error:
        raise InputError(str(error)) from None
    snapshot = state.snapshot()
    if as_json:
        print(json.dumps(_as_json(run, hosts, jobs, snapshot)))
    else:
        _print(run, hosts, jobs, snapshot)
    return ExitCode.DONE


def _read_jobs(record: EngineRecord | None) -> list[Job] | None:
    """The run's jobs in the queue; None where there is no queue, or none to be asked."""
    if record is None or record.engine != "slurm":
        return None
    try:
        return jobs_of(record)
    except InputError as error:
        # The files of the run still tell the rest.
        warn(f"jobs unknown: {error}")
        return None


def _as_json(
    run: pathlib.Path, hosts: list[HostStatus], jobs: list[Job] | None, snapshot: Snapshot
) -> dict[str, Any]:
    evaluation = snapshot.evaluation
    return {
        "run": str(run),
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
    run: pathlib.Path, hosts: list[HostStatus], jobs: list[Job] | None, snapshot: Snapshot
) -> None:
    console = make_console()
    say(f"{run}: {_state(hosts)}")
    if jobs is not None:
        _print_jobs(console, jobs)
    for host in hosts:
        if host.problem is not None:
            say(f"host {host.host} {host.state}: {host.problem}")
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
    say(f"{format_line(snapshot)}{parameters}")


def _print_jobs(console: Console, jobs: list[Job]) -> None:
    if not jobs:
        say("no jobs in the queue")
        return
    table = Table("job", "name", "state", "host", "reason", box=None)
    for job in jobs:
        reason = "-" if job.reason == "None" else job.reason
        table.add_row(job.job_id, job.name, job.state.lower(), job.host or "-", reason)
    console.print(table)


def _state(hosts: list[HostStatus]) -> str:
    """That of the learner's host, which is first, or the only one."""
    return hosts[0].state if hosts else "not started"


def _params_age(snapshot: Snapshot) -> float | None:
    """Age of the oldest parameters any actor plays with."""
    ages = (actor.params_age_seconds for actor in snapshot.actors)
    return max((age for age in ages if age is not None), default=None)
