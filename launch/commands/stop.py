"""`vantage stop RUN`: drains, checkpoints and stops a run, wherever it runs."""

import pathlib
import time
from collections.abc import Callable
from typing import NamedTuple

from launch.engines.kubernetes.stop import stop_run
from launch.engines.record import EngineRecord, load_engine
from launch.engines.slurm import cluster
from launch.engines.slurm.jobs import jobs_of
from launch.errors import ExitCode, InputError
from launch.run_dir import RunDir
from launch.supervise.status_file import read_status
from launch.supervise.supervisor import Outcome
from launch.terminal import say

_IN_ORDER = (Outcome.STOPPED.value, Outcome.FINISHED.value)


class _Watched(NamedTuple):
    """A run that is to stop, as it is seen from here."""

    alive: Callable[[], list[str]]  # what of it still runs
    cancel: Callable[[list[str]], None]  # ends what need not be drained
    poll_seconds: float
    not_running: str
    way_out: str


def stop(run: pathlib.Path, timeout_seconds: float) -> ExitCode:
    """Asks the run to drain, checkpoint and stop; returns when it has."""
    run_dir = RunDir(run)
    run_dir.check_own()
    run_dir.load_config()
    record = load_engine(run_dir)
    if record is not None and record.engine == "kubernetes":
        return stop_run(record, run, timeout_seconds)
    on_slurm = record is not None and record.engine == "slurm"
    watched = _jobs(record) if record is not None and on_slurm else _supervisor(run_dir)
    alive = watched.alive()
    if not alive:
        raise InputError(f"'{run}' {watched.not_running}; nothing to stop")
    try:
        run_dir.stop_file.touch()
    except OSError as error:
        raise InputError(
            f"cannot write '{run_dir.stop_file}': {error.strerror}; end the run with Ctrl-C or "
            f"SIGTERM: {' '.join(alive)}"
        ) from None
    watched.cancel(alive)
    deadline = time.monotonic() + timeout_seconds
    while alive := watched.alive():
        if time.monotonic() > deadline:
            raise InputError(
                f"'{run}' is still stopping after {timeout_seconds:.0f} s; wait with --timeout, "
                f"or {watched.way_out} {' '.join(alive)}"
            )
        time.sleep(watched.poll_seconds)
    status = read_status(run_dir)
    state = "stopped" if status is None else status.state
    say(f"{run}: {state}")
    return ExitCode.DONE if state in _IN_ORDER else ExitCode.FAILED


def _supervisor(run_dir: RunDir) -> _Watched:
    def alive() -> list[str]:
        status = read_status(run_dir)
        running = status is not None and status.alive
        return [f"(pid {status.pid} on {status.host})"] if status is not None and running else []

    return _Watched(
        alive,
        cancel=lambda alive: None,
        poll_seconds=0.2,
        not_running="is not running",
        way_out="look at its logs",
    )


def _jobs(record: EngineRecord) -> _Watched:
    return _Watched(
        alive=lambda: [job.job_id for job in jobs_of(record)],
        # What has not started needs no draining.
        cancel=lambda job_ids: cluster.cancel(job_ids, only_waiting=True),
        poll_seconds=1.0,
        not_running="has no jobs in the queue",
        way_out="give up its last checkpoint with: scancel",
    )
