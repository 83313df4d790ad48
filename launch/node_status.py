"""What a supervisor says of its host and of its nodes: the one layout, of status files and of rows.

Whoever reads it has it from a file or from the network, so values have kinds and bounds. A file of
another version may hold more, or less where there is a default.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from launch.bounds import Bounds
from launch.config_json import known_from_json

_COUNT = Bounds(0, 2**40)
_CODE = Bounds(-(2**40), 2**40)
_SECONDS = Bounds(-(2**40), 2**40)  # also since 1970, by any clock
_ALIVE = ("running", "stopping")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """A node, as its supervisor sees it."""

    role: str
    index: Annotated[int, _COUNT]
    host: str | None = None
    pid: Annotated[int | None, _COUNT] = None
    state: str
    restarts: Annotated[int, _COUNT] = 0
    exit_code: Annotated[int | None, _CODE] = None
    progress: str | None = None
    progress_age_seconds: Annotated[float | None, _SECONDS] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostReport:
    """A supervisor, and how its host is."""

    state: str
    host: str
    machine: str | None = None  # which pids are counted in
    pid: Annotated[int, _COUNT]
    pid_start: str | None = None
    job: str | None = None  # of Slurm, if it started the supervisor
    started: Annotated[float, _SECONDS] = 0.0  # when it began, by the clock of its host
    updated: Annotated[float, _SECONDS]  # when it said this, by the same clock
    beat: Annotated[int | None, _COUNT] = None  # changes with every word, whatever the clock does
    problem: str | None = None  # why the host could not join

    @property
    def is_up(self) -> bool:
        """Whether the supervisor was at work when it said this."""
        return self.state in _ALIVE


def to_json(report: HostReport, nodes: Sequence[NodeStatus]) -> dict[str, Any]:
    """What a status file says."""
    return {**dataclasses.asdict(report), "nodes": [dataclasses.asdict(node) for node in nodes]}


def from_json(stored: Any) -> tuple[HostReport, list[NodeStatus]]:
    """The inverse of `to_json`; raises ValueError for what no supervisor says."""
    report = known_from_json(HostReport, stored, "status")
    nodes = stored.get("nodes")
    if not isinstance(nodes, list):
        raise ValueError("status has no nodes")
    return report, [known_from_json(NodeStatus, node, "node") for node in nodes]


def to_row(report: HostReport, node: NodeStatus) -> dict[str, Any]:
    """A host and one of its nodes as a flat row, small whatever the number of nodes."""
    about_node = dataclasses.asdict(node)
    return {**dataclasses.asdict(report), **{_in_row(name): v for name, v in about_node.items()}}


def from_row(row: Mapping[str, Any]) -> tuple[HostReport, NodeStatus]:
    """The inverse of `to_row`; raises ValueError for what no supervisor says."""
    names = [field.name for field in dataclasses.fields(NodeStatus)]
    node = {name: row[_in_row(name)] for name in names if _in_row(name) in row}
    return known_from_json(HostReport, row, "row"), known_from_json(NodeStatus, node, "row")


def _in_row(name: str) -> str:
    """What a field of the node is called beside those of its host."""
    return f"node_{name}"
