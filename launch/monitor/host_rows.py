"""What the supervisor of an actor host says of its nodes, as telemetry rows, and files again.

A host that shares no file system with the learner's cannot write its status there. So its actors
send what their supervisor wrote, a row for each node, and the monitor puts the file together: from
then on, `vantage status` sees no difference.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from launch.run_dir import RunDir
from report.atomic_file import write_atomically
from report.metrics_file import Row

_ROLE = re.compile(r"host/(\d{1,5})")
_NODE = "node_"
_ABOUT_HOST = (
    *("state", "host", "machine", "pid", "pid_start", "job", "started", "updated", "beat"),
    "problem",
)
_ABOUT_NODE = (
    *("role", "index", "host", "pid", "state", "restarts", "exit_code", "progress"),
    "progress_age_seconds",
)
# Of all hosts together. Whoever has a key can send rows, and none may fill the memory.
_MAX_NODES = 20_000


def role_of(host: int) -> str:
    """The role under which an actor host reports."""
    return f"host/{host}"


def rows_of(status: dict[str, Any]) -> list[Row]:
    """A host's status as rows: flat, and each small enough whatever the number of nodes."""
    about_host = {key: status.get(key) for key in _ABOUT_HOST}
    return [
        {**about_host, **{f"{_NODE}{key}": node.get(key) for key in _ABOUT_NODE}}
        for node in status["nodes"]
    ]


class HostFiles:
    """Puts hosts' rows together again, into the files that their supervisors could not write."""

    def __init__(self, run_dir: RunDir):
        self._run_dir = run_dir
        self._nodes: dict[int, dict[tuple[str, int], dict[str, Any]]] = {}
        self._num_nodes = 0

    def take(self, rows: Sequence[Row]) -> list[Row]:
        """Writes what rows of hosts say; returns the others."""
        others, newest = [], {}
        for row in rows:
            found = _ROLE.fullmatch(row["role"]) if isinstance(row.get("role"), str) else None
            if found is None:
                others.append(row)
            elif self._keep(int(found[1]), row):
                newest[int(found[1])] = row
        for host, row in newest.items():
            self._write(host, row)
        return others

    def _keep(self, host: int, row: Row) -> bool:
        """Whether the row is one of a host's; what it says of a node is kept."""
        role, index = row.get("node_role"), row.get("node_index")
        if not isinstance(role, str) or not isinstance(index, int):
            return False
        nodes = self._nodes.setdefault(host, {})
        if (role, index) not in nodes:
            if self._num_nodes >= _MAX_NODES:
                return False
            self._num_nodes += 1
        nodes[role, index] = {key: row.get(f"{_NODE}{key}") for key in _ABOUT_NODE}
        return True

    def _write(self, host: int, row: Row) -> None:
        status = {key: row.get(key) for key in _ABOUT_HOST}
        path = self._run_dir.host_file(host)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        nodes = list(self._nodes[host].values())
        text = json.dumps({**status, "nodes": nodes, "by_telemetry": True}, indent=1)
        write_atomically(path, text)


def forget_hosts(run_dir: RunDir) -> None:
    """Removes what hosts of an earlier start have said."""
    for path in run_dir.host_file(0).parent.glob("actor-*.json"):
        path.unlink(missing_ok=True)


def hosts_by_telemetry(run_dir: RunDir) -> list[int]:
    """Actor hosts that were alive when they last said something by telemetry, and only so."""
    found = []
    for path in sorted(run_dir.host_file(0).parent.glob("actor-*.json")):
        try:
            stored = json.loads(path.read_text())
            if stored.get("by_telemetry") and stored["state"] in ("running", "stopping"):
                found.append(int(path.stem.removeprefix("actor-")))
        except (OSError, ValueError, KeyError, AttributeError):
            continue  # a file that nobody can read says nothing
    return found
