"""`vantage status` of a run in a Kubernetes cluster: its pods, and what the learner's host says."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from launch.engines.kubernetes import cluster, names
from launch.engines.kubernetes.cluster import Job, Pod
from launch.engines.kubernetes.inside import run_in, running_learner
from launch.engines.record import EngineRecord
from launch.errors import ExitCode, InputError
from launch.terminal import make_console, say, warn
from report.json_file import json_text, parse_json


def cluster_status(run: pathlib.Path, record: EngineRecord, as_json: bool) -> ExitCode:
    """Prints the run's jobs and pods, then the same as anywhere, as it is seen in its pod."""
    jobs, pods = cluster.jobs(record), cluster.pods(record)
    said = _ask_learner(record, as_json)
    if as_json:
        print(json_text({**_found(said, jobs), "run": str(run), **_listed(jobs, pods)}))
        return ExitCode.DONE
    say(f"{run}: {_state(jobs)}")
    if pods:
        make_console().print(_pod_table(pods))
    for job in jobs:
        if job.reason:
            say(f"job {job.name} {job.state}: {job.reason}")
    for line in said.splitlines():
        say(line)
    return ExitCode.DONE


def _ask_learner(record: EngineRecord, as_json: bool) -> str:
    """What `vantage status` says in the learner's pod; nothing where there is none at work."""
    learner = running_learner(record)
    if learner is None:
        return ""
    command = ["vantage", "status", names.RUN_DIR, *(["--json"] if as_json else [])]
    try:
        return run_in(record, learner, command)
    except InputError as error:
        # The cluster still tells the rest.
        warn(f"the learner's host cannot be asked: {error}")
        return ""


def _found(said: str, jobs: Sequence[Job]) -> dict[str, Any]:
    try:
        found = parse_json(said.encode())
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"state": _state(jobs)}


def _listed(jobs: Sequence[Job], pods: Sequence[Pod]) -> dict[str, Any]:
    return {
        "jobs": [job._asdict() for job in jobs],
        "pods": [dataclasses.asdict(pod) for pod in pods],
    }


def _state(jobs: Sequence[Job]) -> str:
    """The run's, which is its learner's."""
    for job in jobs:
        if job.component == "learner":
            return {"complete": "finished or stopped"}.get(job.state, job.state)
    return "not in the cluster"


def _pod_table(pods: Sequence[Pod]) -> Table:
    table = Table("pod", "state", "node", "reason", box=None)
    for pod in pods:
        table.add_row(pod.name, pod.state, pod.node or "-", pod.reason or "-")
    return table
