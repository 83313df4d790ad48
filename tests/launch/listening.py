"""Ports that are listened on, in the network that a process lives in."""

import pathlib

_LISTEN = "0A"  # the state, as /proc writes it


def listening_ports(pid: int) -> set[int]:
    """All of them, whoever holds them."""
    tables = [pathlib.Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTEN}
