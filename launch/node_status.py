"""What a supervisor says of its host and of its nodes: the one layout, of status files and of rows.

Whoever reads it has it from a file or from the network, so values have kinds and bounds. A file of
another version may hold more, or less where there is a default.
"""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from report.plain_text import plain

_Said = TypeVar("_Said")
_TOO_LARGE = 2**40  # for pids, counts, and seconds since 1970
_SHOWN = 40  # characters of what is not of the right kind
_ALIVE = ("running", "stopping")


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """A node, as its supervisor sees it."""

    role: str
    index: int
    host: str | None = None
    pid: int | None = None
    state: str
    restarts: int = 0
    exit_code: int | None = None
    progress: str | None = None
    progress_age_seconds: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostReport:
    """A supervisor, and how its host is."""

    state: str
    host: str
    machine: str | None = None  # which pids are counted in
    pid: int
    pid_start: str | None = None
    job: str | None = None  # of Slurm, if it started the supervisor
    started: float = 0.0  # when it began, by the clock of its host
    updated: float  # when it said this, by the same clock
    beat: int | None = None  # changes with every word, whatever the clock does
    problem: str | None = None  # why the host could not join

    @property
    def is_up(self) -> bool:
        """Whether the supervisor was at work when it said this."""
        return self.state in _ALIVE


def to_json(report: HostReport, nodes: Sequence[NodeStatus]) -> dict[str, Any]:
    """What a status file says."""
    return {**vars(report), "nodes": [dict(vars(node)) for node in nodes]}


def from_json(stored: Any) -> tuple[HostReport, list[NodeStatus]]:
    """The inverse of `to_json`; raises ValueError for what no supervisor says."""
    report = _read(HostReport, stored)
    nodes = stored.get("nodes")
    if not isinstance(nodes, list):
        raise ValueError("it has no list of nodes")
    return report, [_read(NodeStatus, node) for node in nodes]


def to_row(report: HostReport, node: NodeStatus) -> dict[str, Any]:
    """A host and one of its nodes as a flat row, small whatever the number of nodes."""
    about_node = vars(node)
    return {**vars(report), **{_in_row(name): v for name, v in about_node.items()}}


def from_row(row: Mapping[str, Any]) -> tuple[HostReport, NodeStatus]:
    """The inverse of `to_row`; raises ValueError for what no supervisor says."""
    names = [field.name for field in dataclasses.fields(NodeStatus)]
    node = {name: row[_in_row(name)] for name in names if _in_row(name) in row}
    return _read(HostReport, row), _read(NodeStatus, node)


def _in_row(name: str) -> str:
    """What a field of the node is called beside those of its host."""
    return f"node_{name}"


def _read(cls: type[_Said], stored: Any) -> _Said:
    """An instance from its fields, without those that are unknown.

    Rows and files of hundreds of hosts come every few seconds, hence no general reader.
    """
    if not isinstance(stored, Mapping):
        raise ValueError(f"{_shown(stored)} is no JSON object")
    values = {}
    for name, kinds in _KINDS[cls].items():
        if name not in stored:
            continue
        value = values[name] = stored[name]
        if type(value) not in kinds:
            raise ValueError(f"{name}={_shown(value)} is not of the right kind")
        # Negated, because every comparison with NaN is false.
        if isinstance(value, (int, float)) and not abs(value) < _TOO_LARGE:
            raise ValueError(f"{name} is out of bounds")
    try:
        return cls(**values)
    except TypeError as error:  # a field without a default
        raise ValueError(str(error)) from None


def _shown(value: Any) -> str:
    return plain(repr(value), limit=_SHOWN)


def _kinds_of(cls: type) -> dict[str, set[type]]:
    """The types that the values of each field may have, as JSON has them."""
    hints = typing.get_type_hints(cls).items()
    kinds = {name: set(typing.get_args(hint) or (hint,)) for name, hint in hints}
    return {name: {*of, int} if float in of else of for name, of in kinds.items()}


_KINDS: dict[type, dict[str, set[type]]] = {cls: _kinds_of(cls) for cls in (NodeStatus, HostReport)}
