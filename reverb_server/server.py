"""The replay role: runs the server, checkpoints it to the run directory, reports on itself."""

import os
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import reverb

from reverb_server import counts


def make_checkpointer(directory: pathlib.Path) -> reverb.checkpointers.CheckpointerBase:
    """A checkpointer with a durable root (the default one writes to a temporary folder)."""
    directory.mkdir(parents=True, exist_ok=True)
    return reverb.checkpointers.DefaultCheckpointer(str(directory))


def serve(
    tables: Sequence[reverb.Table],
    *,
    port: int,
    checkpoint_directory: pathlib.Path,
    checkpoint_seconds: float,
    report_seconds: float,
    report: Callable[[dict[str, Any]], None],
    wait_for_stop: Callable[[float], bool],
) -> None:
    """Serves until told to stop, then checkpoints a last time."""
    server = reverb.Server(
        list(tables), port=port, checkpointer=make_checkpointer(checkpoint_directory)
    )
    client = reverb.Client(f"localhost:{server.port}")
    saved_at = time.monotonic()
    while not wait_for_stop(report_seconds):
        report(_status(client))
        if time.monotonic() - saved_at >= checkpoint_seconds:
            report(_status(client) | _checkpoint(client))
            saved_at = time.monotonic()
    report(_status(client) | _checkpoint(client))
    server.stop()


def _status(client: reverb.Client) -> dict[str, Any]:
    table = counts.read_counts(client)
    resident = psutil.Process().memory_info().rss
    return {"inserts": table.inserts, "size": table.size, "bytes": resident}


def _checkpoint(client: reverb.Client) -> dict[str, Any]:
    """Writes a checkpoint. The server serves nobody while it does, so the seconds matter."""
    started = time.monotonic()
    path = client.checkpoint()
    seconds = time.monotonic() - started
    size = sum(f.stat().st_size for f in os.scandir(path) if f.is_file())
    return {"checkpoint_seconds": seconds, "checkpoint_bytes": size}
