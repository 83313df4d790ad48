"""`vantage train --engine slurm`: checks the request, writes the scripts, queues the jobs."""

import dataclasses
import pathlib

from launch.bounds import COUNT
from launch.config import Config
from launch.engines.options import SlurmOptions
from launch.engines.record import EngineRecord
from launch.engines.slurm import cluster
from launch.engines.slurm.jobs import jobs_of
from launch.engines.slurm.scripts import actor_script, learner_script
from launch.engines.slurm.time_limit import time_limit_seconds
from launch.errors import ExitCode, InputError
from launch.names import check_printable
from launch.run_dir import RunDir
from launch.terminal import say
from report.atomic_file import write_atomically
from report.counted import counted

_LEARNER, _ACTORS = "learner.sh", "actors.sh"


def check_options(options: SlurmOptions) -> None:
    """Refuses what no cluster would take."""
    COUNT.check(learner_cpus=options.learner_cpus, drain_seconds=options.drain_seconds)
    for name, value in dataclasses.asdict(options).items():
        if isinstance(value, str):
            check_printable(name, value)
    seconds = None if options.time is None else time_limit_seconds(options.time)
    if seconds is not None and seconds < 2 * options.drain_seconds:
        raise InputError(
            f"time={options.time} leaves too little to train: hosts begin to drain "
            f"drain_seconds={options.drain_seconds} before it; raise --time"
        )


def check_cluster(record: EngineRecord, config: Config, root: pathlib.Path) -> None:
    """Has the cluster judge the scripts before anything is written."""
    check_partitions(record.slurm)
    for script in (learner_script(record, config, root), actor_script(record, root)):
        cluster.test_submission(script)


def check_partitions(options: SlurmOptions) -> None:
    """Refuses partitions that this cluster does not have, and machines without a cluster."""
    cluster.require_slurm()
    known = cluster.partitions()
    for flag in ("learner_partition", "actor_partition"):
        name = getattr(options, flag)
        # Several may be given, as to sbatch: the first that is free is taken.
        for one in [] if name is None else name.split(","):
            if one not in known:
                raise InputError(f"{flag}={one} is unknown; this cluster has {', '.join(known)}")


def check_idle(record: EngineRecord) -> None:
    """A run can be continued only when its former jobs are gone."""
    jobs = jobs_of(record)
    if jobs:
        ids = ", ".join(job.job_id for job in jobs)
        raise InputError(f"the run is still in the queue (jobs {ids}); `vantage stop` it first")


def submit_run(record: EngineRecord, config: Config, run_dir: RunDir) -> ExitCode:
    """Queues both jobs; actor hosts wait in the queue until the learner's host has one."""
    write_scripts(record, config, run_dir)
    (run_dir.root / "logs").mkdir(exist_ok=True)
    learner = cluster.submit(run_dir.scripts / _LEARNER)
    try:
        actors = cluster.submit(run_dir.scripts / _ACTORS, [f"--dependency=after:{learner}"])
    except InputError:
        cluster.cancel([learner])
        raise
    hosts = record.hosts
    say(f"job {learner}: the learner's host")
    each = counted(hosts.actors_per_host, "actor")
    say(f"job {actors}: {counted(hosts.actor_hosts, 'actor host')} with {each} each")
    say(f"watch with: vantage status {run_dir.root}")
    say(f"stop with:  vantage stop {run_dir.root}")
    return ExitCode.DONE


def submit_actors(run_dir: RunDir, array: str) -> str:
    """Queues more actor hosts; returns the job id."""
    return cluster.submit(run_dir.scripts / _ACTORS, [f"--array={array}"])


def write_scripts(record: EngineRecord, config: Config, run_dir: RunDir) -> None:
    """Writes what is queued to where it can be read later."""
    run_dir.scripts.mkdir(exist_ok=True)
    write_atomically(run_dir.scripts / _LEARNER, learner_script(record, config, run_dir.root))
    write_atomically(run_dir.scripts / _ACTORS, actor_script(record, run_dir.root))
