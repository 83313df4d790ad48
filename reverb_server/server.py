"""The replay role: runs the server, checkpoints it to the run directory, reports on itself."""

import logging
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import reverb

from reverb_server import tables
from reverb_server.checkpoint import CheckpointFolder
from reverb_server.client import SERVER_AWAY, read_counts, table_info
from reverb_server.load_log import without_counting
from reverb_server.port import check_port_free

_ASK_SECONDS = 2.0  # longest time between two looks whether the server answers
# Memory that a step that is held, its items and what is kept for a while can take at the very most.
_BYTES_PER_STEP = 1 << 16
_UNEXPLAINED_BYTES = 1 << 29  # that memory may grow by without more steps in replay


def serve(
    served: Sequence[reverb.Table],
    layout: tables.ItemLayout,
    *,
    port: int,
    checkpoint_directory: pathlib.Path,
    checkpoint_seconds: float,
    report_seconds: float,
    report: Callable[[dict[str, Any]], None],
    wait_for_stop: Callable[[float], bool],
    on_answer: Callable[[int], None] = lambda inserts: None,
    on_save: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Serves until told to stop, then checkpoints a last time. Restores what it finds there.

    `on_answer` is told that the server answers, and how many inserts it has seen; `on_save` that it
    is about to write a checkpoint, and answers nobody meanwhile. Raises if the last one failed.
    """
    check_port_free(port)
    folder = CheckpointFolder(checkpoint_directory, layout)
    with without_counting():
        server = reverb.Server(list(served), port=port, checkpointer=folder.make_checkpointer())
    client = reverb.Client(f"localhost:{server.port}")
    guard = _MemoryGuard(client, _counts(client, layout).get("size", 0))
    saved_at = reported_at = clock()
    try:
        while not wait_for_stop(min(report_seconds, _ASK_SECONDS)):
            row = _counts(client, layout)
            if row:
                on_answer(row["inserts"])
                guard.look(row["size"])
            try:
                if clock() - saved_at >= checkpoint_seconds:
                    on_save()
                    row |= _checkpoint(client, folder)
                    saved_at = clock()
                elif clock() - reported_at < report_seconds:
                    continue
                row |= _memory()
            except OSError as error:
                # Out of file descriptors, say, because of a flood of connections. What the server
                # holds is worth more than a report.
                logging.error("cannot report or checkpoint for now: %s", error)
                continue
            report(row)
            reported_at = clock()
        last = _counts(client, layout) | _memory() | _checkpoint(client, folder)
        report(last)
        if "checkpoint_failed" in last:
            raise OSError("no last replay checkpoint was written; the one before is kept")
    finally:
        server.stop()


class _MemoryGuard:
    """Reverb has no bound on the bytes of a row; this drops telemetry that grows without a reason.

    Growth counts from when the table was last empty, so those who send slowly are no better off.
    """

    def __init__(self, client: reverb.Client, size: int):
        self._client = client
        self._before: tuple[int, int] | None = (_memory()["bytes"], size)

    def look(self, size: int) -> None:
        """Drops the rows of telemetry if memory has grown too far for what replay has grown."""
        try:
            rows = table_info(self._client, tables.TELEMETRY).current_size
            now = _memory()["bytes"]
            if rows == 0 or self._before is None:
                self._before = now, size
                return
            grown, more_steps = now - self._before[0], max(size - self._before[1], 0)
            if grown <= _UNEXPLAINED_BYTES + more_steps * _BYTES_PER_STEP:
                return
            logging.error(
                "memory grew by %d MB that replay does not explain: dropping %d rows of telemetry",
                grown >> 20,
                rows,
            )
            self._client.reset(tables.TELEMETRY)
            self._before = None  # what they took is free by the next look
        except SERVER_AWAY as error:
            logging.warning("the replay server is slow to answer: %s", error)


def _counts(client: reverb.Client, layout: tables.ItemLayout) -> dict[str, Any]:
    """What the table has counted; nothing when there is no answer in time."""
    try:
        table = read_counts(client, layout)
    except SERVER_AWAY as error:
        # The server runs in this process: it is overloaded, not gone. The next report tells more.
        logging.warning("the replay server is slow to answer: %s", error)
        return {}
    return {"inserts": table.inserts, "size": table.size}


def _memory() -> dict[str, Any]:
    return {"bytes": psutil.Process().memory_info().rss}


def _checkpoint(client: reverb.Client, folder: CheckpointFolder) -> dict[str, Any]:
    written = folder.write(client)
    if written is None:
        return {"checkpoint_failed": 1}
    return {"checkpoint_seconds": written.seconds, "checkpoint_bytes": written.size_bytes}
