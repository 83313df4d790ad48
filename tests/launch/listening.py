"""Ports that are listened on: in the network that a process lives in, and by processes."""

import pathlib
from collections.abc import Iterable

import psutil

_LISTEN = "0A"  # the state, as /proc writes it


def listening_ports(pid: int) -> set[int]:
    """All of them, whoever holds them."""
    tables = [pathlib.Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTEN}


def listeners(processes: Iterable[psutil.Process]) -> set[tuple[int, int]]:
    """Pid and port of each listener of these processes in this process's own network."""
    return {
        (process.pid, connection.laddr.port)
        for process in processes
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
