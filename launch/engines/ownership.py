"""Which host a run belongs to: the one that runs its learner, and it alone may end the run.

A second one, started by mistake, is refused before it writes anything. A lock tells where the file
system has locks; the status of the owner, which it renews while it lives, tells everywhere.
"""

import contextlib
import os

from launch.errors import InputError
from launch.run_dir import InUseError, RunDir
from launch.supervise.status_file import JOB_VARIABLE, HostStatus, read_status


def own_run(run_dir: RunDir) -> contextlib.ExitStack:
    """Makes this process the owner for as long as the result is open; refuses while another is."""
    held = contextlib.ExitStack()
    try:
        held.enter_context(run_dir.lock())
        owner = read_status(run_dir)
        in_use = owner is not None and owner.alive
    except InUseError:
        owner = read_status(run_dir)
        in_use = True
    except OSError as error:
        raise InputError(f"cannot write run directory '{run_dir.root}': {error.strerror}") from None
    if in_use and not _is_this_job(owner):
        held.close()
        raise InputError(
            f"'{run_dir.root}' belongs to {_name(owner)}, which is alive; this host stays out of "
            f"it (to move the run: vantage stop {run_dir.root}, then --resume)"
        )
    return held


def _is_this_job(owner: HostStatus | None) -> bool:
    """Whether this is the owner's own job, which Slurm gave up elsewhere and started here."""
    job = os.environ.get(JOB_VARIABLE)
    return owner is not None and job is not None and owner.job == job


def _name(owner: HostStatus | None) -> str:
    return "another process" if owner is None else f"host {owner.host} (pid {owner.pid})"
