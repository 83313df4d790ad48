"""Rows for the monitor by way of the `telemetry` table: small JSON objects, each read once.

Reporting must never hold up the one who reports: rows are sent without waiting, on a stream of
their own, and when the server is away they are dropped and counted.
"""

import json
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import reverb

from reverb_server import tables

_INFO_TIMEOUT_SECONDS = 5
_MAX_PENDING_ROWS = 256


class TelemetryWriter:
    """Sends rows of one role."""

    def __init__(
        self,
        client: reverb.Client,
        role: str,
        *,
        clock: Callable[[], float] = time.time,
    ):
        self._writer = client.trajectory_writer(num_keep_alive_refs=1)
        self._writer.configure(("row",), num_keep_alive_refs=1, max_chunk_length=1)
        self._role = role
        self._clock = clock
        self._dropped_rows = 0

    def __call__(self, row: dict[str, Any]) -> None:
        """Sends one row, stamped with time and role, or drops it if too many are waiting."""
        if not self._flush(_MAX_PENDING_ROWS, timeout_ms=1):
            if self._dropped_rows == 0:
                logging.warning("telemetry: the server takes no rows; dropping them for now")
            self._dropped_rows += 1
            return
        stamped = {"time": self._clock(), "role": self._role, **row}
        if self._dropped_rows:
            stamped["dropped_rows"] = self._dropped_rows
            self._dropped_rows = 0
        self._writer.append({"row": encode_row(stamped)})
        self._writer.create_item(tables.TELEMETRY, 1.0, {"row": self._writer.history["row"][-1]})

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Gives the last rows so long to arrive."""
        self._flush(0, timeout_ms=int(timeout_seconds * 1000))
        self._writer.close()

    def _flush(self, max_pending_rows: int, timeout_ms: int) -> bool:
        try:
            self._writer.flush(max_pending_rows, timeout_ms=timeout_ms)
        except reverb.DeadlineExceededError:
            return False
        return True


def drain(client: reverb.Client) -> list[dict[str, Any]]:
    """All rows waiting in the table; never waits for more. One reader at a time."""
    info = client.server_info(timeout=_INFO_TIMEOUT_SECONDS)[tables.TELEMETRY]
    if info.current_size == 0:
        return []
    # Only a reader makes the table smaller, so as many rows as were counted are there.
    samples = client.sample(tables.TELEMETRY, info.current_size, emit_timesteps=False)
    return [decode_row(sample.data[0]) for sample in samples]


def encode_row(row: dict[str, Any]) -> np.ndarray:
    """JSON in a fixed number of bytes (a stream's rows must share one shape)."""
    text = json.dumps(row).encode()
    if len(text) > tables.TELEMETRY_ROW_BYTES:
        raise ValueError(
            f"telemetry row of {len(text)} bytes; at most {tables.TELEMETRY_ROW_BYTES} fit"
        )
    padded = np.zeros(tables.TELEMETRY_ROW_BYTES, np.uint8)
    padded[: len(text)] = np.frombuffer(text, np.uint8)
    return padded


def decode_row(data: np.ndarray) -> dict[str, Any]:
    """The inverse of `encode_row`."""
    return json.loads(data.tobytes().rstrip(b"\0"))
