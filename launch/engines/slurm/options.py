"""What `vantage train --engine slurm` asks of Slurm."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class SlurmOptions:
    """Only with --engine slurm."""

    learner_partition: str | None = None
    """Partition of the learner's host; None is the cluster's default."""
    learner_gres: str | None = None
    """Generic resources of the learner's host, such as gpu:1."""
    learner_cpus: int = 4
    """Cores of the learner's host: learner, replay, evaluator and monitor share them."""
    learner_mem: str | None = None
    """Memory of the learner's host, as for sbatch --mem; None: replay's need and 6 GiB."""
    actor_partition: str | None = None
    """Partition of the actors' hosts; None is the cluster's default."""
    actor_mem: str | None = None
    """Memory of an actor host, as for sbatch --mem; None: 1.5 GiB per actor."""
    account: str | None = None
    """Account to charge."""
    time: str | None = None
    """Time limit of one stretch (2-00:00:00); the run goes on in a next one."""
    drain_seconds: int = 300
    """How long before the time limit hosts begin to drain and write checkpoints."""
    sbatch_extra: str = ""
    """More sbatch options for both jobs, such as "--qos=high --exclude=n13"; they win."""


_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<rest>\d+(?::\d+){0,2})")


def time_limit_seconds(time: str) -> int | None:
    """A time limit as sbatch reads it; None if it is no number (`UNLIMITED`, or a mistake)."""
    found = _TIME.fullmatch(time)
    if found is None:
        return None
    numbers = [int(number) for number in found["rest"].split(":")]
    if found["days"] is not None:
        # days-hours[:minutes[:seconds]]
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return 86400 * int(found["days"]) + 3600 * hours + 60 * minutes + seconds
    if len(numbers) < 3:
        # minutes[:seconds]
        minutes, seconds = [*numbers, 0][:2]
        return 60 * minutes + seconds
    return 3600 * numbers[0] + 60 * numbers[1] + numbers[2]
