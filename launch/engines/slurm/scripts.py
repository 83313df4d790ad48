"""The two batch scripts of a run, as text."""

import pathlib
import shlex
from collections.abc import Sequence

from launch.config import Config
from launch.engines.host_size import ACTOR_MIB, learner_mib
from launch.engines.options import ACTOR_GROUPS, LEARNER_GROUPS, SlurmOptions
from launch.engines.record import EngineRecord
from launch.engines.slurm.jobs import actor_job, learner_job
from launch.errors import ExitCode
from launch.invocation import host_command
from launch.names import check_printable

_JOB = '"$SLURM_JOB_ID"'
# The last task of an array has the array's own job id: requeueing that would requeue all tasks.
TASK = '"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"'
_CRASH_SECONDS = 20  # a host killed sooner than this after its start would be killed again

_REQUEUE_TRIES, _REQUEUE_PAUSE = 20, 15  # a controller that restarts is back within minutes

# Slurm signals this shell before the time limit; `wait` returns early then, so it is asked again.
# A host that makes room, or that was killed by something else than Slurm, goes back to the queue.
_BODY = """\
{before}trap 'kill -USR1 "$host"' USR1
trap 'canceled=yes; kill -TERM "$host"' TERM
canceled=no
{command} &
host=$!
while kill -0 "$host" 2>/dev/null; do wait "$host"; done
wait "$host"
code=$?
if [ "$code" -gt 128 ] && [ "$canceled" = no ] && [ "$SECONDS" -ge {crash_seconds} ]; then
    code={come_back}
fi
if [ "$code" -eq {come_back} ]; then
    for attempt in {{1..{requeue_tries}}}; do
        scontrol requeue {this_job} && break
        sleep {requeue_pause}
    done
fi
{afterwards}exit "$code"
"""
# Actor hosts that still wait in the queue have nothing to wait for.
_CANCEL_WAITING = """\
if [ -e {stop_file} ]; then
    scancel --quiet --state=PENDING --user="$(id -un)" --name={actor_job}
fi
"""


def learner_script(record: EngineRecord, config: Config, run_dir: pathlib.Path) -> str:
    """The job of the learner's host; `run_dir` is absolute."""
    slurm = record.slurm
    options = [
        f"--job-name={learner_job(record)}",
        *learner_options(slurm, learner_mib(config)),
        f"--output={pattern(run_dir)}/logs/slurm-learner-%j.log",
    ]
    command = _host_command(record, run_dir, ["--groups", *LEARNER_GROUPS])
    afterwards = _CANCEL_WAITING.format(
        stop_file=shlex.quote(str(run_dir / "stop")), actor_job=actor_job(record)
    )
    return batch_script(slurm, options, command, this_job=_JOB, afterwards=afterwards)


def learner_options(slurm: SlurmOptions, needed_mib: int) -> list[str]:
    """What a host with a learner on it asks for."""
    return [
        f"--cpus-per-task={slurm.learner_cpus}",
        f"--mem={slurm.learner_mem or f'{needed_mib}M'}",
        *_optional("--partition", slurm.learner_partition),
        *_optional("--gres", slurm.learner_gres),
    ]


def actor_script(record: EngineRecord, run_dir: pathlib.Path) -> str:
    """The job array of the actor hosts, one task each."""
    slurm, hosts = record.slurm, record.hosts
    options = [
        f"--job-name={actor_job(record)}",
        f"--array={array_range(range(hosts.actor_hosts))}",
        f"--cpus-per-task={hosts.actors_per_host}",
        f"--mem={slurm.actor_mem or f'{hosts.actors_per_host * ACTOR_MIB}M'}",
        *_optional("--partition", slurm.actor_partition),
        f"--output={pattern(run_dir)}/logs/slurm-actor-%A_%a.log",
    ]
    command = _host_command(record, run_dir, ["--groups", *ACTOR_GROUPS, "--index"])
    command = f'{command} "$SLURM_ARRAY_TASK_ID"'
    return batch_script(slurm, options, command, this_job=TASK)


def array_range(indices: Sequence[int]) -> str:
    """Indices as sbatch --array takes them."""
    if isinstance(indices, range):
        return f"{indices[0]}-{indices[-1]}"
    return ",".join(map(str, indices))


def batch_script(
    slurm: SlurmOptions,
    options: list[str],
    command: str,
    *,
    this_job: str,
    before: str = "",
    afterwards: str = "",
) -> str:
    """A script that runs one command, drains it in time, and goes back to the queue with it."""
    shared = [
        "--nodes=1",
        "--ntasks=1",
        "--requeue",
        "--open-mode=append",
        # B: the shell alone; its host supervisor stops the nodes in their order.
        f"--signal=B:USR1@{slurm.drain_seconds}",
        *_optional("--account", slurm.account),
        *_optional("--time", slurm.time),
    ]
    lines = [_directive(shlex.quote(option)) for option in [*options, *shared]]
    if slurm.sbatch_extra:
        lines.append(_directive(slurm.sbatch_extra))
    body = _BODY.format(
        before=before,
        command=command,
        crash_seconds=_CRASH_SECONDS,
        come_back=int(ExitCode.COME_BACK),
        requeue_tries=_REQUEUE_TRIES,
        requeue_pause=_REQUEUE_PAUSE,
        this_job=this_job,
        afterwards=afterwards,
    )
    return "\n".join(["#!/bin/bash", *lines, "", body])


def _directive(option: str) -> str:
    """A line that sbatch reads and the shell takes for a comment: it must not end early."""
    check_printable("sbatch option", option)
    return f"#SBATCH {option}"


def _host_command(record: EngineRecord, run_dir: pathlib.Path, flags: list[str]) -> str:
    return host_command(run_dir, ["--run-id", record.run_id, *flags])


def _optional(option: str, value: str | None) -> list[str]:
    """An option, if there is a value for it."""
    return [] if value is None else [f"{option}={value}"]


def pattern(path: pathlib.Path) -> str:
    """A path in an option where Slurm reads % as a pattern."""
    return str(path).replace("%", "%%")
