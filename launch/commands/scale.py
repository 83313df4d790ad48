"""`vantage scale RUN`: adds or drops actor hosts of a run on a cluster while it trains."""

import dataclasses
import pathlib
from collections.abc import Sequence

from launch.engines.kubernetes import scale as kubernetes_scale
from launch.engines.kubernetes.settings import check_options as check_kubernetes_options
from launch.engines.record import EngineRecord, load_engine
from launch.engines.slurm import cluster
from launch.engines.slurm.jobs import actor_job, jobs_of, wait_until_gone
from launch.engines.slurm.scripts import array_range
from launch.engines.slurm.submit import submit_actors, write_scripts
from launch.errors import ExitCode, InputError
from launch.gate.keys import add_actor_keys
from launch.run_dir import RunDir
from launch.terminal import say

_DROP_SECONDS = 120.0  # for hosts that were dropped to end: Slurm kills them before


def scale(run: pathlib.Path, actor_hosts: int) -> ExitCode:
    """Gives the run this many actor hosts; on Slurm those that failed are replaced."""
    # Relative paths mean nothing on another host.
    run_dir = RunDir(run.absolute())
    run_dir.check_own()
    config, record = run_dir.load_config(), load_engine(run_dir)
    if record is None or record.engine not in ("slurm", "kubernetes"):
        raise InputError(
            f"'{run_dir.root}' is not a run on Slurm or Kubernetes; only those can be scaled"
        )
    hosts = dataclasses.replace(record.hosts, actor_hosts=actor_hosts)
    hosts.check()
    record = dataclasses.replace(record, hosts=hosts)
    jobs = _check_running(run_dir, record)
    # New actors read their number from the config; those that play keep what they started with.
    actor = dataclasses.replace(config.actor, actors=hosts.num_actors)
    config = dataclasses.replace(config, actor=actor)
    add_actor_keys(run_dir.keys, actor_hosts)
    run_dir.create(config)
    record.save(run_dir)
    if record.engine == "kubernetes":
        kubernetes_scale.match(record, config, run_dir)
        return ExitCode.DONE
    write_scripts(record, config, run_dir)
    _match(run_dir, record, jobs)
    return ExitCode.DONE


def _check_running(run_dir: RunDir, record: EngineRecord) -> list[cluster.Job]:
    """The run's jobs on Slurm; refuses a run without a learner."""
    if record.engine == "kubernetes":
        check_kubernetes_options(record.kubernetes, record.sizes, record.hosts)
        kubernetes_scale.check_running(record, run_dir)
        return []
    run_dir.check_stack()
    jobs = jobs_of(record)
    if not any(job.name != actor_job(record) for job in jobs):
        raise InputError(
            f"'{run_dir.root}' has no learner job in the queue; continue it with: "
            f"vantage train --run-dir {run_dir.root} --resume "
            f"--actor-hosts {record.hosts.actor_hosts}"
        )
    return jobs


def _match(run_dir: RunDir, record: EngineRecord, jobs: Sequence[cluster.Job]) -> None:
    """Makes the tasks in the queue those that the record asks for."""
    wanted = set(range(record.hosts.actor_hosts))
    tasks = [(job.task, job.job_id) for job in jobs if job.task is not None]
    dropped = [job_id for task, job_id in tasks if task not in wanted]
    cluster.cancel(dropped)
    missing = sorted(wanted - {task for task, _ in tasks})
    if missing:
        job_id = submit_actors(run_dir, array_range(missing))
        say(f"job {job_id}: actor hosts {array_range(missing)}")
    if wait_until_gone(record, dropped, _DROP_SECONDS):
        say(f"dropped hosts are still ending: {' '.join(dropped)}")
    for index in {task for task, _ in tasks} - wanted:
        run_dir.host_file(index).unlink(missing_ok=True)
    change = f"{len(missing)} added, {len(dropped)} dropped"
    say(f"{run_dir.root}: {record.hosts.actor_hosts} actor hosts ({change})")
