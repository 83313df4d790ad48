"""The replay role: runs the server, checkpoints it to the run directory, reports on itself."""

import logging
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import reverb

from reverb_server.checkpoint import CheckpointFolder
from reverb_server.client import SERVER_AWAY, read_counts
from reverb_server.port import check_port_free


def serve(
    tables: Sequence[reverb.Table],
    *,
    port: int,
    checkpoint_directory: pathlib.Path,
    checkpoint_seconds: float,
    report_seconds: float,
    report: Callable[[dict[str, Any]], None],
    wait_for_stop: Callable[[float], bool],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Serves until told to stop, then checkpoints a last time. Restores what it finds there."""
    check_port_free(port)
    folder = CheckpointFolder(checkpoint_directory)
    server = reverb.Server(list(tables), port=port, checkpointer=folder.make_checkpointer())
    client = reverb.Client(f"localhost:{server.port}")
    saved_at = clock()
    try:
        while not wait_for_stop(report_seconds):
            try:
                row = _status(client)
                if clock() - saved_at >= checkpoint_seconds:
                    row |= _checkpoint(client, folder)
                    saved_at = clock()
            except OSError as error:
                # Out of file descriptors, say, because of a flood of connections. What the server
                # holds is worth more than a report.
                logging.error("cannot report or checkpoint for now: %s", error)
                continue
            report(row)
        report(_status(client) | _checkpoint(client, folder))
    finally:
        server.stop()


def _status(client: reverb.Client) -> dict[str, Any]:
    resident = {"bytes": psutil.Process().memory_info().rss}
    try:
        table = read_counts(client)
    except SERVER_AWAY as error:
        # The server runs in this process: it is overloaded, not gone. The next report tells more.
        logging.warning("the replay server is slow to answer: %s", error)
        return resident
    return {"inserts": table.inserts, "size": table.size, **resident}


def _checkpoint(client: reverb.Client, folder: CheckpointFolder) -> dict[str, Any]:
    written = folder.write(client)
    if written is None:
        return {"checkpoint_failed": 1}
    return {"checkpoint_seconds": written.seconds, "checkpoint_bytes": written.size_bytes}
