"""The machine: cores, memory, disk, open files, and whether a run can have its own network."""

import os
import pathlib
import resource
import shutil

from launch.commands.doctor.check import Check
from launch.machine.limits import available_bytes, usable_cores
from launch.supervise.namespace import NoNamespaceError, make_namespace

_GIB = 2**30
# What `launch.memory_need` says of the presets `cpu` and `paper`, to the tenth. It cannot be asked
# where packages are missing; a test holds these to it.
_MEMORY_NEEDED_BYTES = int(1.7 * _GIB)
_MEMORY_WANTED_BYTES = int(5.1 * _GIB)
# Logs and learner checkpoints; then also checkpoints of a full replay.
_DISK_NEEDED_BYTES = 2 * _GIB
_DISK_WANTED_BYTES = 10 * _GIB
# Sockets of a few hundred writers and samplers, beside the shared libraries.
_OPEN_FILES_NEEDED = 1024


def check_cores() -> Check:
    """Cores this process may use, which is less than the machine has under Slurm."""
    cores = usable_cores()
    found = f"{cores} usable of {os.cpu_count()}"
    if cores < 2:
        return Check("cores", None, found, "2 or more: actors and learner share one core and wait")
    return Check("cores", True, found)


def check_memory() -> Check:
    """Memory that is free now, within the limits set for us."""
    return _amount_check(
        "memory",
        available_bytes(),
        _MEMORY_NEEDED_BYTES,
        _MEMORY_WANTED_BYTES,
        "a full `paper` replay",
    )


def check_disk(folder: pathlib.Path) -> Check:
    """Space where runs/ will be."""
    free_bytes = shutil.disk_usage(folder).free
    return _amount_check(
        "disk", free_bytes, _DISK_NEEDED_BYTES, _DISK_WANTED_BYTES, "checkpoints of a full replay"
    )


def check_open_files() -> Check:
    """The soft limit; the hard one says how far a user can raise it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= _OPEN_FILES_NEEDED:
        return Check("open files", True, "unlimited" if soft == unlimited else str(soft))
    if hard == unlimited or hard >= _OPEN_FILES_NEEDED:
        return Check("open files", False, str(soft), f"ulimit -n {_OPEN_FILES_NEEDED}")
    return Check("open files", False, str(soft), f"ask for a hard limit above {hard} (limits.conf)")


def check_network() -> Check:
    """Whether replay's port can be kept from everyone else; runs train either way."""
    try:
        make_namespace().close()
    except NoNamespaceError as error:
        fix = "allow namespaces, or close the port with a firewall: docs/trust.md"
        return Check("network", None, f"Reverb's port will be open: {error}", fix)
    return Check("network", True, "a run has its own, which nobody else reaches")


def _amount_check(name: str, amount: int, needed: int, wanted: int, wanted_for: str) -> Check:
    found = f"{amount / _GIB:.1f} GiB free"
    if amount < needed:
        return Check(name, False, found, f"free some: {needed / _GIB:.0f} GiB are needed")
    if amount < wanted:
        return Check(name, None, found, f"{wanted / _GIB:.0f} GiB for {wanted_for}")
    return Check(name, True, found)
