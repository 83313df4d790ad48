"""`vantage stop` of a run in a cluster: drains the learner, then deletes all but the volume."""

import pathlib
import time

from launch.engines.kubernetes import cluster, names
from launch.engines.kubernetes.inside import run_in, running_learner
from launch.engines.record import EngineRecord
from launch.errors import ExitCode, InputError
from launch.terminal import say

_POLL_SECONDS = 1.0


def stop_run(record: EngineRecord, run: pathlib.Path, timeout_seconds: float) -> ExitCode:
    """Returns when the run is out of the cluster; what it saved stays on its volume."""
    if not cluster.jobs(record):
        raise InputError(f"'{run}' has no jobs in the cluster; nothing to stop")
    learner = running_learner(record)
    if learner is not None:
        run_in(record, learner, ["touch", f"{names.RUN_DIR}/stop"])
        _wait_for_end(record, run, timeout_seconds)
    job = next((job for job in cluster.jobs(record) if job.component == "learner"), None)
    # Actors that were not told end now, as their pods are deleted.
    cluster.delete(record)
    if job is not None and job.state == "failed":
        say(f"{run}: failed: {job.reason}")
        return ExitCode.FAILED
    waited = "" if job is None or job.state == "complete" else "; no learner was running"
    say(f"{run}: stopped{waited}; its volume {names.base(record)} is kept")
    return ExitCode.DONE


def _wait_for_end(record: EngineRecord, run: pathlib.Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(job.component == "learner" and job.state == "active" for job in cluster.jobs(record)):
        if time.monotonic() > deadline:
            raise InputError(
                f"'{run}' is still stopping after {seconds:.0f} s; wait with --timeout, or give up "
                f"its last checkpoint with: kubectl delete job {names.learner(record)}"
            )
        time.sleep(_POLL_SECONDS)
