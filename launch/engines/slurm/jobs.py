"""The jobs of a run: what they are called, and which of them are in the queue."""

import time
from collections.abc import Sequence

from launch.engines.record import EngineRecord
from launch.engines.slurm import cluster

_POLL_SECONDS = 1.0


def learner_job(record: EngineRecord) -> str:
    """Name of the learner's job, by which it is found in the queue."""
    return f"vantage-{record.run_id}-learner"


def actor_job(record: EngineRecord) -> str:
    """Name of the actors' job arrays."""
    return f"vantage-{record.run_id}-actor"


def jobs_of(record: EngineRecord) -> list[cluster.Job]:
    """All jobs of the run that wait, run or end."""
    return cluster.queue([learner_job(record), actor_job(record)])


def wait_until_gone(record: EngineRecord, job_ids: Sequence[str], seconds: float) -> list[str]:
    """Waits until none of these is in the queue; returns those that still are."""
    deadline = time.monotonic() + seconds
    while left := [job.job_id for job in jobs_of(record) if job.job_id in job_ids]:
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_SECONDS)
    return left
