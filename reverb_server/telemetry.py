"""Rows for the monitor by way of the `telemetry` table: small JSON objects, each read once.

Reporting must never hold up the one who reports: rows are sent without waiting, on a stream of
their own, and when the server is away they are dropped and counted.
"""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import reverb

from reverb_server import tables
from reverb_server.client import table_info

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
        # Without validation: it would wait for a server that is not there yet, without bound.
        self._writer = client.trajectory_writer(num_keep_alive_refs=1, validate_items=False)
        self._writer.configure(("row",), num_keep_alive_refs=1, max_chunk_length=1)
        self._role = role
        self._clock = clock
        self._dropped_rows = 0

    def __call__(self, row: dict[str, Any]) -> None:
        """Sends one row, stamped with time and role, or drops it if too many are waiting."""
        stamped = {"time": self._clock(), "role": self._role, **row}
        if self._dropped_rows:
            stamped["dropped_rows"] = self._dropped_rows
        data = encode_row(stamped)
        if not self._flush(_MAX_PENDING_ROWS, timeout_ms=1):
            if self._dropped_rows == 0:
                logging.warning("telemetry: the server takes no rows; dropping them for now")
            self._dropped_rows += 1
            return
        self._dropped_rows = 0
        self._writer.append({"row": data})
        self._writer.create_item(tables.TELEMETRY, 1.0, {"row": self._writer.history["row"][-1]})

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Waits for the last rows to arrive, up to the limit."""
        self._flush(0, timeout_ms=max(int(timeout_seconds * 1000), 1))
        self._writer.close()

    def _flush(self, max_pending_rows: int, timeout_ms: int) -> bool:
        try:
            self._writer.flush(max_pending_rows, timeout_ms=timeout_ms)
        except reverb.DeadlineExceededError:
            return False
        return True


class TelemetryReader:
    """Takes rows out of the table. One reader at a time, from one thread."""

    def __init__(self, client: reverb.Client):
        self._client = client
        self._rows: deque[dict[str, Any]] = deque()
        self._reading: threading.Thread | None = None
        self._error: Exception | None = None
        self.junk_rows = 0

    def drain(self, timeout_seconds: float = 5.0) -> list[dict[str, Any]]:
        """All rows waiting in the table; never waits for more.

        If the server stops answering half-way, those that came so far; the others are fetched in
        the background and come with a later call.
        """
        if self._reading is None:
            info = table_info(self._client, tables.TELEMETRY)
            if info.current_size > 0:
                self._reading = threading.Thread(
                    target=self._read, args=(info.current_size,), name="telemetry", daemon=True
                )
                self._reading.start()
        if self._reading is not None:
            self._reading.join(timeout_seconds)
            if not self._reading.is_alive():
                self._reading = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return [self._rows.popleft() for _ in range(len(self._rows))]

    def _read(self, num_rows: int) -> None:
        # Only a reader makes the table smaller, so as many rows as were counted are there.
        try:
            for sample in self._client.sample(tables.TELEMETRY, num_rows, emit_timesteps=False):
                self._take(sample.data)
        except Exception as error:
            self._error = error

    def _take(self, columns: Sequence[np.ndarray]) -> None:
        try:
            self._rows.append(decode_row(*columns))
        except (TypeError, ValueError, RecursionError):
            # Anyone can reach the table; what is no row of ours must not end the reader.
            if self.junk_rows == 0:
                logging.error("telemetry holds rows that are none of this run's; dropping them")
            self.junk_rows += 1


def encode_row(row: dict[str, Any]) -> np.ndarray:
    """JSON in a fixed number of bytes (a stream's rows must share one shape).

    NaN and the infinities pass as Python writes them; only files must do without.
    """
    text = json.dumps(row).encode()
    if len(text) > tables.TELEMETRY_ROW_BYTES:
        raise ValueError(
            f"telemetry row of {len(text)} bytes; at most {tables.TELEMETRY_ROW_BYTES} fit"
        )
    padded = np.zeros(tables.TELEMETRY_ROW_BYTES, np.uint8)
    padded[: len(text)] = np.frombuffer(text, np.uint8)
    return padded


def decode_row(data: np.ndarray) -> dict[str, Any]:
    """The row that `encode_row` was given; ValueError for what it cannot have made."""
    if data.dtype != np.uint8 or data.nbytes != tables.TELEMETRY_ROW_BYTES:
        raise ValueError(f"{data.dtype}{list(data.shape)} is no row")
    row = json.loads(data.tobytes().rstrip(b"\0"))
    # Rows are flat. What is nested could be read here, and be too deep for who has less stack left.
    if not isinstance(row, dict) or any(isinstance(v, (list, dict)) for v in row.values()):
        raise ValueError("what it holds is no row")
    return row
