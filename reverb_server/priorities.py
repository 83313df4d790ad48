"""New priorities for sampled items, on their way back to the `replay` table."""

import logging
import math
import queue
import threading
from typing import Any

import numpy as np
import reverb

from reverb_server import tables

_MAX_WAITING = 16  # batches whose priorities wait to be sent
_FLOOR = 1e-6  # keeps every item reachable


class PriorityUpdater:
    """Sends priorities from a thread of its own: a server that is away must not hold the learner.

    What the server is too slow to take is dropped and counted.
    """

    def __init__(self, client: reverb.Client):
        self._client = client
        self._queue: queue.Queue[tuple[np.ndarray, Any] | None] = queue.Queue(_MAX_WAITING)
        self._error: Exception | None = None
        self.dropped_updates = 0
        self._thread = threading.Thread(target=self._run, name="priorities", daemon=True)
        self._thread.start()

    def __call__(self, keys: np.ndarray, td: Any) -> None:
        """Hands over the errors of one batch; `td` may still be on its way from the device."""
        if self._error is not None:
            raise self._error
        try:
            self._queue.put_nowait((keys, td))
        except queue.Full:
            if self.dropped_updates == 0:
                logging.warning("the replay server takes no priorities; dropping them for now")
            self.dropped_updates += 1

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Sends what is waiting, within the limit. Raises what ended the thread, if anything."""
        try:
            self._queue.put(None, timeout=timeout_seconds)
        except queue.Full:
            logging.info("left the last priorities unsent")
            return
        self._thread.join(timeout_seconds)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while (update := self._queue.get()) is not None:
                keys, td = update
                update_priorities(self._client, keys, np.asarray(td))
        except Exception as error:
            self._error = error


def update_priorities(client: reverb.Client, keys: np.ndarray, td: np.ndarray) -> None:
    """Sets the priorities of sampled items to their absolute error. Waits for the server.

    Errors of diverged learning are left out: the server refuses NaN, and would sample an infinite
    priority every time. That learning diverged is for the learner to say.
    """
    priorities = np.abs(td) + _FLOOR
    pairs = zip(keys.tolist(), priorities.tolist(), strict=True)
    updates = {key: priority for key, priority in pairs if math.isfinite(priority)}
    client.mutate_priorities(tables.REPLAY, updates=updates)
