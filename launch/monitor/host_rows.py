"""What the supervisor of an actor host says of its nodes, as telemetry rows, and files again.

A host that shares no file system with the learner's cannot write its status there. So its actors
send what their supervisor wrote, a row for each node, and the monitor puts the file together: from
then on, `vantage status` sees no difference.
"""

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Annotated

from launch.bounds import Bounds
from launch.config_json import dataclass_from_json
from launch.layout import MAX_CLUSTER_HOSTS
from launch.node_status import HostReport, NodeStatus, from_json, from_row, to_json
from launch.run_dir import RunDir
from report.atomic_file import write_atomically
from report.json_file import read_json
from report.metrics_file import Row

_ROLE = re.compile(r"host/([0-9]{1,5})")
_NUMBER = Bounds(0, 10_000)


def role_of(host: int) -> str:
    """The role under which an actor host reports."""
    return f"host/{host}"


@dataclasses.dataclass(frozen=True)
class _ActorHosts:
    """The actor hosts that a run can have: whoever can send rows could make up others."""

    actor_hosts: Annotated[int, _NUMBER] = 0
    actors_per_host: Annotated[int, _NUMBER] = 0

    def has(self, host: int, node: NodeStatus) -> bool:
        """Whether there is such a host, and such a node on it."""
        first = host * self.actors_per_host
        indices = {"actor": range(first, first + self.actors_per_host), "tunnel": (host,)}
        return host < self.actor_hosts and node.index in indices.get(node.role, ())


def _actor_hosts(run_dir: RunDir) -> _ActorHosts:
    """Those of the run's record; a local run has neither."""
    try:
        stored = read_json(run_dir.engine_file)
        hosts = {
            field.name: stored["hosts"][field.name] for field in dataclasses.fields(_ActorHosts)
        }
        known = dataclass_from_json(_ActorHosts, hosts, "engine")
        # A cluster may have been asked for more since, where this directory is not.
        is_scaled = stored["engine"] == "kubernetes"
    except (OSError, ValueError, KeyError, TypeError):
        return _ActorHosts()
    return dataclasses.replace(known, actor_hosts=MAX_CLUSTER_HOSTS) if is_scaled else known


class HostFiles:
    """Puts hosts' rows together again, into the files that their supervisors could not write."""

    def __init__(self, run_dir: RunDir):
        self._run_dir = run_dir
        self._hosts = _actor_hosts(run_dir)
        self._nodes: dict[int, dict[tuple[str, int], NodeStatus]] = {}
        self.num_dropped = 0  # rows of hosts, or nodes, that the run does not have

    def take(self, rows: Sequence[Row]) -> list[Row]:
        """Writes what rows of hosts say; returns the others."""
        others: list[Row] = []
        newest: dict[int, HostReport] = {}
        for row in rows:
            found = _ROLE.fullmatch(row["role"]) if isinstance(row.get("role"), str) else None
            if found is None:
                others.append(row)
                continue
            host = int(found[1])
            report = self._keep(host, row)
            if report is None:
                self.num_dropped += 1
            else:
                newest[host] = report
        for host, report in newest.items():
            self._write(host, report)
        return others

    def _keep(self, host: int, row: Row) -> HostReport | None:
        """What a row says of its host, if it is one of the run's; of a node it is kept."""
        try:
            report, node = from_row(row)
        except ValueError:
            return None
        if not self._hosts.has(host, node):
            return None
        self._nodes.setdefault(host, {})[node.role, node.index] = node
        return report

    def _write(self, host: int, report: HostReport) -> None:
        path = self._run_dir.host_file(host)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        said = to_json(report, list(self._nodes[host].values()))
        write_atomically(path, json.dumps({**said, "by_telemetry": True}, indent=1))


def forget_hosts(run_dir: RunDir) -> None:
    """Removes what hosts of an earlier start have said."""
    for path in run_dir.host_file(0).parent.glob("actor-*.json"):
        path.unlink(missing_ok=True)


def hosts_by_telemetry(run_dir: RunDir) -> list[int]:
    """Actor hosts that were alive when they last said something by telemetry, and only so."""
    hosts = range(_actor_hosts(run_dir).actor_hosts)
    return [host for host in hosts if _is_up(run_dir, host)]


def _is_up(run_dir: RunDir, host: int) -> bool:
    try:
        stored = read_json(run_dir.host_file(host))
        report, _ = from_json(stored)
    except (OSError, ValueError):
        return False  # a file that nobody can read says nothing
    return report.is_up and stored.get("by_telemetry") is True
