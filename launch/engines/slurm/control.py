"""`vantage stop` and `vantage scale` of a run on Slurm."""

import dataclasses
import time
from collections.abc import Sequence

from launch.engines.record import EngineRecord, HostsOptions, check_hosts, load_engine
from launch.engines.slurm import commands
from launch.engines.slurm.scripts import actor_job, array_range
from launch.engines.slurm.submit import jobs_of, submit_actors, write_scripts
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir

_POLL_SECONDS = 1.0
_DROP_SECONDS = 120.0  # for hosts that were dropped to end: Slurm kills them before


def stop(run_dir: RunDir, record: EngineRecord, *, timeout_seconds: float) -> ExitCode:
    """Drains and checkpoints every host, then takes what is left from the queue."""
    jobs = jobs_of(record)
    if not jobs:
        raise InputError(f"'{run_dir.root}' has no jobs in the queue; nothing to stop")
    run_dir.stop_file.touch()
    ids = [job.job_id for job in jobs]
    # What has not started needs no draining.
    commands.cancel(ids, only_waiting=True)
    left = _wait_until_gone(record, ids, timeout_seconds)
    if left:
        raise InputError(
            f"'{run_dir.root}' is still draining after {timeout_seconds:.0f} s; wait with "
            f"--timeout, or give up its last checkpoint with: scancel {' '.join(left)}"
        )
    print(f"{run_dir.root}: stopped")
    return ExitCode.DONE


def scale(run_dir: RunDir, *, actor_hosts: int) -> ExitCode:
    """Makes the run have so many actor hosts, and replaces those that failed."""
    config, record = run_dir.load_config(), load_engine(run_dir)
    if record is None or record.engine != "slurm":
        raise InputError(f"'{run_dir.root}' is not a Slurm run; only those can be scaled")
    hosts = HostsOptions(actor_hosts, record.hosts.actors_per_host)
    check_hosts(hosts)
    jobs = jobs_of(record)
    if not any(job.name != actor_job(record) for job in jobs):
        raise InputError(
            f"'{run_dir.root}' has no learner job in the queue; continue it with: "
            f"vantage train --run-dir {run_dir.root} --resume --actor-hosts {actor_hosts}"
        )
    record = dataclasses.replace(record, hosts=hosts)
    # New actors read their number from the config; those that play keep what they started with.
    actor = dataclasses.replace(config.actor, actors=hosts.num_actors)
    config = dataclasses.replace(config, actor=actor)
    run_dir.create(config)
    record.save(run_dir)
    write_scripts(record, config, run_dir)
    return _match(run_dir, record, jobs)


def _match(run_dir: RunDir, record: EngineRecord, jobs: Sequence[commands.Job]) -> ExitCode:
    wanted = set(range(record.hosts.actor_hosts))
    tasks = [(job.task, job.job_id) for job in jobs if job.task is not None]
    dropped = [job_id for task, job_id in tasks if task not in wanted]
    commands.cancel(dropped)
    missing = sorted(wanted - {task for task, _ in tasks})
    if missing:
        job_id = submit_actors(run_dir, array_range(missing))
        print(f"job {job_id}: actor hosts {array_range(missing)}")
    if _wait_until_gone(record, dropped, _DROP_SECONDS):
        print(f"dropped hosts are still ending: {' '.join(dropped)}")
    for index in {task for task, _ in tasks} - wanted:
        run_dir.host_file(index).unlink(missing_ok=True)
    change = f"{len(missing)} added, {len(dropped)} dropped"
    print(f"{run_dir.root}: {record.hosts.actor_hosts} actor hosts ({change})")
    return ExitCode.DONE


def _wait_until_gone(record: EngineRecord, job_ids: Sequence[str], seconds: float) -> list[str]:
    """Waits until none of these is in the queue; returns those that still are."""
    deadline = time.monotonic() + seconds
    while left := [job.job_id for job in jobs_of(record) if job.job_id in job_ids]:
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_SECONDS)
    return left
