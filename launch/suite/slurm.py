"""`vantage suite --engine slurm`: queues the runs that are neither done nor in the queue."""

import pathlib
from collections.abc import Mapping, Sequence

from launch.engines.options import SlurmOptions
from launch.engines.slurm import cluster
from launch.engines.slurm.scripts import array_range
from launch.engines.slurm.submit import check_options, check_partitions
from launch.errors import ExitCode
from launch.suite.folder import prepare_folder
from launch.suite.plan import PlannedRun
from launch.suite.slurm_script import suite_script
from launch.suite.suite_run import is_finished
from launch.terminal import say
from report.atomic_file import write_atomically
from report.counted import counted

_SCRIPT = "suite.sh"


def suite_on_slurm(
    planned: Sequence[PlannedRun],
    slurm: SlurmOptions,
    out: pathlib.Path,
    *,
    parallel: int | None,
) -> ExitCode:
    """Queues what is neither done nor in the queue; returns at once."""
    # Relative paths mean nothing on another host.
    out = out.absolute()
    check_options(slurm)
    _check_suite(slurm, planned, out)
    known = prepare_folder(out, planned)
    # Looked up first: what ends in between is then found done, and not queued again.
    queued = _queued_tasks(known.suite_id)
    left = [run for run in planned if not is_finished(run.run_dir, run.config)]
    say(f"{counted(len(planned), 'run')} in {out}: {len(planned) - len(left)} done")
    # A run keeps its number when the suite grows, so that it is found in the queue.
    tasks = {known.runs.index(run.name): run for run in left}
    _queue(slurm, known.suite_id, tasks, queued, out=out, parallel=parallel)
    return ExitCode.DONE


def _check_suite(slurm: SlurmOptions, planned: Sequence[PlannedRun], out: pathlib.Path) -> None:
    """Has the cluster judge the script before anything is written."""
    check_partitions(slurm)
    cluster.test_submission(suite_script(slurm, "vantage-suite", dict(enumerate(planned)), out))


def _job_name(suite_id: str) -> str:
    """The name of all jobs of a suite, by which they are found in the queue."""
    return f"vantage-suite-{suite_id}"


def _queued_tasks(suite_id: str) -> dict[int | None, cluster.Job]:
    """The suite's jobs that wait, run or end, by the numbers of their runs."""
    return {job.task: job for job in cluster.queue([_job_name(suite_id)])}


def _queue(
    slurm: SlurmOptions,
    suite_id: str,
    tasks: Mapping[int, PlannedRun],
    queued: Mapping[int | None, cluster.Job],
    *,
    out: pathlib.Path,
    parallel: int | None,
) -> None:
    """Queues these runs by their numbers, but for those that are queued."""
    new = [number for number in tasks if number not in queued]
    for number, run in tasks.items():
        if number in queued:
            job = queued[number]
            say(f"in the queue: {run.title} (job {job.job_id}, {job.state.lower()})")
    if new:
        script = out / _SCRIPT
        write_atomically(script, suite_script(slurm, _job_name(suite_id), tasks, out))
        at_most = "" if parallel is None else f"%{parallel}"
        job_id = cluster.submit(script, [f"--array={array_range(new)}{at_most}"])
        say(f"job {job_id}: {counted(len(new), 'run')}; logs in {out / 'logs'}")
    if tasks:
        say("the same command shows what is left, and queues again what failed")
        say(f"stop with: scancel --name={_job_name(suite_id)}")
