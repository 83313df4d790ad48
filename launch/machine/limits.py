"""How much of this machine a run may use: memory and cores, within the limits set for us.

Limits of cgroups count, of both versions and of every level above us: containers, Slurm and systemd
set them. Standard library only, because the doctor asks too.
"""

import math
import os
import pathlib
from collections.abc import Iterator

_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_OWN_CGROUPS = pathlib.Path("/proc/self/cgroup")
_MEMORY = pathlib.Path("/proc/meminfo")
_VERSION_2 = ""  # its line names no controller


def available_bytes() -> int:
    """Memory that new processes can have without swapping, by the kernel's estimate or a limit."""
    lines = _MEMORY.read_text().splitlines()
    free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return min([free, *_free_under_limits()])


def usable_cores() -> int:
    """Cores this process may use, which is less than the machine has under Slurm."""
    return min([len(os.sched_getaffinity(0)), *map(math.ceil, _core_quotas())])


def _free_under_limits() -> Iterator[int]:
    for folder in _folders("memory"):
        yield from _free(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
    for folder in _folders(_VERSION_2):
        yield from _free(folder, "memory.max", "memory.current", "")


def _free(folder: pathlib.Path, limit: str, used: str, prefix: str) -> Iterator[int]:
    limit_bytes, used_bytes = _number(folder / limit), _number(folder / used)
    if limit_bytes is not None and used_bytes is not None:
        # Files kept in memory count as used, and are given up when someone needs the room.
        kept = {f"{prefix}active_file", f"{prefix}inactive_file"}
        lines = (line.split() for line in _text(folder / "memory.stat").splitlines())
        kept_bytes = sum(int(words[1]) for words in lines if words[0] in kept)
        yield max(limit_bytes - max(used_bytes - kept_bytes, 0), 0)


def _core_quotas() -> Iterator[float]:
    for folder in _folders("cpu"):
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        if quota is not None and period is not None:
            yield quota / period
    for folder in _folders(_VERSION_2):
        quota_and_period = _text(folder / "cpu.max").split()
        if quota_and_period and quota_and_period[0] != "max":
            yield int(quota_and_period[0]) / int(quota_and_period[1])


def _folders(controller: str) -> Iterator[pathlib.Path]:
    """Our folder under a controller, and those above it up to the root."""
    for line in _text(_OWN_CGROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            own = pathlib.Path(path.lstrip("/"))
            yield from (_CGROUPS / controller / folder for folder in (own, *own.parents))


def _number(path: pathlib.Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None  # "max" and -1 are no limits


def _text(path: pathlib.Path) -> str:
    """Nothing of what is not there: the other version of cgroups, or a level above our own."""
    try:
        return path.read_text()
    except OSError:
        return ""
