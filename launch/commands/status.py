"""`vantage status RUN`: the nodes of a run, its rates and its last evaluation."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from launch.commands.cluster_status import cluster_status
from launch.engines.kubernetes.names import in_its_pod
from launch.engines.record import EngineRecord, load_engine
from launch.engines.slurm.cluster import Job
from launch.engines.slurm.jobs import jobs_of
from launch.errors import ExitCode, InputError
from launch.monitor.follow import recent_rows
from launch.monitor.host_rows import hosts_by_telemetry
from launch.monitor.plain_view import format_line
from launch.monitor.snapshot import RunState, Snapshot
from launch.node_status import NodeStatus
from launch.run_dir import RunDir
from launch.supervise.status_file import HostStatus, read_hosts
from launch.terminal import make_console, say, warn
from report.duration import duration_text
from report.json_file import json_text


class _Seen(NamedTuple):
    """A run as it is seen from here."""

    run: pathlib.Path
    state: str
    silent_seconds: float | None  # since its supervisor last wrote, of a run that is not alive
    hosts: Sequence[HostStatus]
    jobs: Sequence[Job] | None  # None where there is no queue
    snapshot: Snapshot


def status(run: pathlib.Path, as_json: bool) -> ExitCode:
    """Prints the state of a run and of each of its nodes."""
    run_dir = RunDir(run)
    record = load_engine(run_dir)
    if record is not None and record.engine == "kubernetes" and not in_its_pod():
        run_dir.check_own()  # it says what kubectl asks, with the rights of whoever called
        return cluster_status(run, record, as_json)
    seen = _look_at(run)
    if as_json:
        print(json_text(_as_json(seen)))
    else:
        _print(seen)
    return ExitCode.DONE


def _look_at(run: pathlib.Path) -> _Seen:
    run_dir = RunDir(run)
    config, record = run_dir.load_config(), load_engine(run_dir)
    learner, actors = read_hosts(run_dir, _num_hosts(run_dir, record))
    state = RunState(
        total_frames=config.frames, target_samples_per_insert=config.replay.samples_per_insert
    )
    try:
        rows = recent_rows(run_dir.metrics_file)
        state.add_since(rows, 0.0 if learner is None else learner.started)
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{run_dir.metrics_file} cannot be read: {error.strerror}") from None
    snapshot = state.snapshot()
    if learner is None or not learner.alive:
        snapshot = snapshot.without_rates()
    else:
        snapshot = snapshot.as_of(learner.updated, config.report_seconds)
    return _Seen(
        run=run,
        state="not started" if learner is None else learner.state,
        silent_seconds=None if learner is None else learner.silent_seconds,
        hosts=[*([] if learner is None else [learner]), *actors],
        jobs=_read_jobs(record),
        snapshot=snapshot,
    )


def _num_hosts(run_dir: RunDir, record: EngineRecord | None) -> int:
    """Actor hosts to look for: those of the record, and those that a cluster added since."""
    asked = 0 if record is None else record.hosts.actor_hosts
    return max([asked, *(index + 1 for index in hosts_by_telemetry(run_dir))])


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


def _as_json(seen: _Seen) -> dict[str, Any]:
    snapshot, evaluation = seen.snapshot, seen.snapshot.evaluation
    return {
        "run": str(seen.run),
        "state": seen.state,
        "silent_seconds": seen.silent_seconds,
        "jobs": None if seen.jobs is None else [job._asdict() for job in seen.jobs],
        "hosts": [
            {"host": host.host, "state": host.state, "problem": host.problem} for host in seen.hosts
        ],
        "nodes": [
            {**dataclasses.asdict(node), "progress_age_seconds": _progress_age(host, node)}
            for host in seen.hosts
            for node in host.nodes
        ],
        "frames": snapshot.frames,
        "total_frames": snapshot.total_frames,
        "frames_per_second": snapshot.frames_per_second,
        "updates": snapshot.updates,
        "updates_per_second": snapshot.updates_per_second,
        "params_age_seconds": _params_age(snapshot),
        "evaluation": None if evaluation is None else evaluation._asdict(),
    }


def _print(seen: _Seen) -> None:
    console = make_console()
    silent = seen.silent_seconds
    heard = "" if silent is None else f", last heard of {duration_text(silent)} ago"
    say(f"{seen.run}: {seen.state}{heard}")
    if seen.jobs is not None:
        _print_jobs(console, seen.jobs)
    for host in seen.hosts:
        if host.problem is not None:
            say(f"host {host.host} {host.state}: {host.problem}")
    if any(host.nodes for host in seen.hosts):
        console.print(_node_table(seen))
    age = _params_age(seen.snapshot)
    parameters = "" if age is None else f" | parameters {age:.1f} s old"
    say(f"{format_line(seen.snapshot)}{parameters}")


def _node_table(seen: _Seen) -> Table:
    columns = ("role", "index", "host", "pid", "state", "restarts", "progress", "ago")
    table = Table(*columns, box=None)
    for host in seen.hosts:
        for node in host.nodes:
            # Of a host that fell silent nobody knows what its nodes do.
            state = node.state if host.state != "dead" else "lost"
            age = _progress_age(host, node)
            cells = (
                *(node.role, node.index, node.host, node.pid, state, node.restarts),
                node.progress,
                None if age is None else duration_text(age),
            )
            table.add_row(*("-" if cell is None else str(cell) for cell in cells))
    return table


def _progress_age(host: HostStatus, node: NodeStatus) -> float | None:
    """Seconds since a node last made progress; None where nobody can tell."""
    age = node.progress_age_seconds
    if age is None or host.alive:
        return age
    return None if host.silent_seconds is None else age + host.silent_seconds


def _print_jobs(console: Console, jobs: Sequence[Job]) -> None:
    if not jobs:
        say("no jobs in the queue")
        return
    table = Table("job", "name", "state", "host", "reason", box=None)
    for job in jobs:
        reason = "-" if job.reason == "None" else job.reason
        table.add_row(job.job_id, job.name, job.state.lower(), job.host or "-", reason)
    console.print(table)


def _params_age(snapshot: Snapshot) -> float | None:
    """Age of the oldest parameters any actor plays with."""
    ages = (actor.params_age_seconds for actor in snapshot.actors)
    return max((age for age in ages if age is not None), default=None)
