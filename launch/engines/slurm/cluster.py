"""Slurm's own commands, each with a time limit, and what they print."""

import pathlib
import re
import shutil
from collections.abc import Sequence
from typing import NamedTuple

from launch.engines.cluster_command import run_cluster_command
from launch.errors import InputError

_COMMAND_SECONDS = 60.0
# Job id, array's job id and index, name, state, host, reason; %N is empty while a job waits.
_QUEUE_FORMAT = "%A|%F|%K|%j|%T|%N|%r"
_NODE_ADDRESS = re.compile(r"\bNodeAddr=(\S+)")


class Job(NamedTuple):
    """A job or one task of a job array, as the queue has it."""

    job_id: str  # "12", or "12_3" for a task: what scancel takes
    name: str
    state: str
    host: str
    reason: str  # why it waits; "None" while it runs
    task: int | None  # index in its array


def require_slurm() -> None:
    """Raises InputError where there is no Slurm to talk to."""
    for command in ("sbatch", "squeue", "scancel", "sinfo"):
        if shutil.which(command) is None:
            raise InputError(f"no {command} in PATH; run this on a login node of a Slurm cluster")


def partitions() -> list[str]:
    """Names of the cluster's partitions."""
    return sorted(set(_call(["sinfo", "--noheader", "--format=%R"]).split()))


def test_submission(script: str) -> None:
    """Has sbatch judge a script (account, resources, time limit) without queueing it."""
    _call(["sbatch", "--test-only"], script=script)


def submit(script: pathlib.Path, options: Sequence[str] = ()) -> str:
    """Queues a script; returns its job id."""
    # --parsable prints "id" or "id;cluster".
    return _call(["sbatch", "--parsable", *options, str(script)]).strip().partition(";")[0]


def queue(names: Sequence[str]) -> list[Job]:
    """The user's jobs of these names that wait, run or end; a task of an array is a job."""
    listed = _call(
        ["squeue", "--noheader", "--array", f"--name={','.join(names)}", f"-o{_QUEUE_FORMAT}"]
    )
    return parse_queue(listed)


def parse_queue(listed: str) -> list[Job]:
    """Lines of squeue as jobs."""
    jobs = []
    for line in listed.splitlines():
        job_id, array_id, index, name, state, host, reason = line.strip().split("|", 6)
        # A job that is no array says N/A.
        task = int(index) if index.isdigit() else None
        job_id = job_id if task is None else f"{array_id}_{task}"
        jobs.append(Job(job_id, name, state, host, reason, task))
    return jobs


def cancel(job_ids: Sequence[str], *, only_waiting: bool = False) -> None:
    """Cancels jobs; those that have ended meanwhile are no error."""
    if job_ids:
        waiting = ["--state=PENDING"] if only_waiting else []
        _call(["scancel", "--quiet", *waiting, *job_ids])


def node_address(host: str) -> str | None:
    """The address by which Slurm itself reaches a host; None if it knows none."""
    found = _NODE_ADDRESS.search(_call(["scontrol", "show", "node", host]))
    return found.group(1) if found else None


def _call(command: list[str], *, script: str | None = None) -> str:
    done = run_cluster_command(
        command,
        text=script,
        seconds=_COMMAND_SECONDS,
        absent=f"no {command[0]} in PATH; is this host part of the cluster?",
        late=f"{command[0]} did not answer within {_COMMAND_SECONDS:.0f} s; is slurmctld up?",
    )
    if done.returncode != 0:
        raise InputError(f"{command[0]} refused: {_one_line(done.stderr)}")
    return done.stdout


def _one_line(text: str) -> str:
    said = [re.sub(r"^\w+: (error: )?", "", line) for line in text.strip().splitlines()]
    return "; ".join(said) or "it gave no reason"
