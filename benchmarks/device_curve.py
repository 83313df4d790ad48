"""Updates a second against the time that a pretended device takes for one, by the host's cores.

The whole program, with actors on recorded games: what is left is what the host does for a device.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from launch.config import Config
from launch.profile.rehearsal import Pretence
from launch.profile.timed_run import run_for

_UPDATE_MS = (0.5, 1.0, 2.0, 5.0)
_CORES = (1, 2)
_SECONDS, _SETTLE_SECONDS = 8.0, 3.0  # there is nothing to compile


class DevicePoint(NamedTuple):
    """One rehearsal."""

    cores: int
    update_ms: float
    updates_per_second: float
    data_wait_fraction: float | None
    cores_used: float


def measure_curve(config: Config) -> list[DevicePoint]:
    """All points, on as many cores as there are, up to two."""
    return [
        measure_point(config, cores, update_ms)
        for cores in _CORES
        if cores <= len(os.sched_getaffinity(0))
        for update_ms in _UPDATE_MS
    ]


def measure_point(config: Config, cores: int, update_ms: float) -> DevicePoint:
    """A rehearsal on some of the cores."""
    with _on_cores(cores):
        run = run_for(
            config,
            _SECONDS,
            pretence=Pretence(update_ms, recorded_play=True),
            settle_seconds=_SETTLE_SECONDS,
        )
    return DevicePoint(
        cores=cores,
        update_ms=update_ms,
        updates_per_second=run.updates_per_second,
        data_wait_fraction=run.roles["learner"].wait_fraction,
        cores_used=sum(role.cores for role in run.roles.values()),
    )


@contextlib.contextmanager
def _on_cores(number: int) -> Iterator[None]:
    """Processes started meanwhile have this number of cores."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(own)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)
