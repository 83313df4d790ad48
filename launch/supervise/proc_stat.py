"""What the kernel says of a process: what it does, and which process a number stands for.

Process ids are given out again, and every machine has them; a process is told by its machine, its
id and its start. Clocks play no part, so neither do clocks that differ between hosts.
"""

import os
import pathlib

_BOOT_FILE = pathlib.Path("/proc/sys/kernel/random/boot_id")
_STATE, _START = 0, 19  # fields of /proc/PID/stat, counted after the name
_GONE = ("Z", "X")


def this_machine() -> str:
    """Names what process ids are counted in: this machine, since it started, in this container."""
    try:
        return f"{_BOOT_FILE.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def start_of(pid: int) -> str | None:
    """When a process of this machine was started, in ticks since the machine was; None if gone."""
    fields = _fields(pid)
    return None if not fields or fields[_STATE] in _GONE else fields[_START]


def state_of(pid: int) -> str:
    """The kernel's letter for what a process does; empty when it is gone."""
    fields = _fields(pid)
    return fields[_STATE] if fields else ""


def _fields(pid: int) -> list[str]:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return stat.rpartition(")")[2].split()
