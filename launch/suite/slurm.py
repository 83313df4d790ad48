"""`vantage suite --engine slurm`: queues the runs that are neither done nor in the queue."""

import pathlib
from collections.abc import Mapping, Sequence

from launch.engines.options import SlurmOptions
from launch.engines.slurm import cluster
from launch.engines.slurm.scripts import array_range
from launch.engines.slurm.submit import check_partitions
from launch.errors import ExitCode
from launch.run_dir import write_atomically
from launch.suite.plan import PlannedRun
from launch.suite.slurm_script import suite_script

_SCRIPT = "suite.sh"


def check_suite(slurm: SlurmOptions, planned: Sequence[PlannedRun], out: pathlib.Path) -> None:
    """Has the cluster judge the script before anything is written."""
    check_partitions(slurm)
    cluster.test_submission(suite_script(slurm, "vantage-suite", dict(enumerate(planned)), out))


def job_name(suite_id: str) -> str:
    """Of all jobs of a suite, by which they are found in the queue."""
    return f"vantage-suite-{suite_id}"


def queued_tasks(suite_id: str) -> dict[int | None, cluster.Job]:
    """The suite's jobs that wait, run or end, by the numbers of their runs."""
    return {job.task: job for job in cluster.queue([job_name(suite_id)])}


def queue_suite(
    slurm: SlurmOptions,
    suite_id: str,
    tasks: Mapping[int, PlannedRun],
    queued: Mapping[int | None, cluster.Job],
    *,
    out: pathlib.Path,
    parallel: int | None,
) -> ExitCode:
    """Queues these runs by their numbers, but for those that are queued; returns at once."""
    new = [number for number in tasks if number not in queued]
    for number, run in tasks.items():
        if number in queued:
            job = queued[number]
            print(f"in the queue: {run.title} (job {job.job_id}, {job.state.lower()})")
    if new:
        script = out / _SCRIPT
        write_atomically(script, suite_script(slurm, job_name(suite_id), tasks, out))
        at_most = "" if parallel is None else f"%{parallel}"
        job_id = cluster.submit(script, [f"--array={array_range(new)}{at_most}"])
        print(f"job {job_id}: {len(new)} runs; logs in {out / 'logs'}")
    if tasks:
        print("the same command shows what is left, and queues again what failed")
        print(f"stop with: scancel --name={job_name(suite_id)}")
    return ExitCode.DONE
