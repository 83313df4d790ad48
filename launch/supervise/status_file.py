"""A host's status file: what its supervisor says of itself and its nodes, written and read."""

import json
import os
import pathlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from launch.errors import InputError
from launch.host_name import this_host
from launch.run_dir import RunDir
from report.atomic_file import write_atomically
from report.json_file import read_json

# A supervisor writes every few seconds; after this long without a word it counts as dead.
SILENT_SECONDS = 60.0
_ALIVE = ("running", "stopping")
_TOO_LARGE = 2**40  # for pids, counts, and seconds since 1970


class HostStatus(NamedTuple):
    """What a supervisor last wrote, and whether it still lives."""

    alive: bool
    state: str
    host: str
    pid: int
    nodes: list[dict[str, Any]]
    problem: str | None  # why the host could not join


def write_host_status(
    path: pathlib.Path,
    state: str,
    *,
    started: float,
    nodes: Sequence[dict[str, Any]] = (),
    problem: str | None = None,
) -> None:
    """Replaces what this process said before; `problem` is why the host could not join."""
    status = {
        "state": state,
        "host": this_host(),
        "pid": os.getpid(),
        "started": started,
        "updated": time.time(),
        "nodes": list(nodes),
        "problem": problem,
    }
    write_atomically(path, json.dumps(status, indent=1))


def read_status(run_dir: RunDir) -> HostStatus | None:
    """The run's own supervisor, that of the learner's host; None if the run was never started."""
    return _read(run_dir.status_file)


def read_actor_hosts(run_dir: RunDir, actor_hosts: int) -> list[HostStatus]:
    """The supervisors of the actor hosts; those that never came up are left out."""
    found = [_read(run_dir.host_file(index)) for index in range(actor_hosts)]
    return [status for status in found if status is not None]


def _read(path: pathlib.Path) -> HostStatus | None:
    try:
        stored = read_json(path)
        _check(stored)
        unfinished = stored["state"] in _ALIVE
        alive = unfinished and _supervisor_alive(stored)
        return HostStatus(
            alive=alive,
            state="dead" if unfinished and not alive else stored["state"],
            host=stored["host"],
            pid=stored["pid"],
            nodes=stored["nodes"],
            problem=stored.get("problem"),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read: {error!r}") from None


def _check(stored: Any) -> None:
    """Raises ValueError for what no supervisor writes; KeyError and TypeError say enough."""
    texts = [stored["state"], stored["host"], stored.get("problem") or ""]
    numbers = [stored["pid"], stored["updated"]]
    for node in stored["nodes"]:
        texts += [node["role"], node["host"] or "", node["state"]]
        numbers += [node["index"], node["pid"] or 0, node["restarts"]]
    for value, kind in [(text, str) for text in texts] + [(n, (int, float)) for n in numbers]:
        if not isinstance(value, kind):
            raise ValueError(f"{value!r} is not of the right kind")
    if not all(abs(number) < _TOO_LARGE for number in numbers):
        raise ValueError("a number is out of bounds")


def _supervisor_alive(stored: dict[str, Any]) -> bool:
    if stored["host"] == this_host():
        try:
            os.kill(stored["pid"], 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
    # Of another machine's process all we can see is whether it still writes. A pid of ours may have
    # been given to someone else since.
    return time.time() - stored["updated"] < SILENT_SECONDS
