"""Parameters by way of the `params` table: the learner replaces one item, actors copy it.

The values are one flat float32 vector; its header says which version they are, how many agent steps
the run had seen, and whether training is over. Actors ask for the table's insert count, which costs
next to nothing, and copy the values only when it moved.
"""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import reverb

from reverb_server import tables
from reverb_server.connection import SERVER_AWAY

_INFO_TIMEOUT_SECONDS = 5


class PublishedParams(NamedTuple):
    """One version of the acting parameters."""

    version: int
    steps: int  # global agent steps when it was published
    finished: bool
    values: np.ndarray  # float32 [P]


class StaleParamsError(Exception):
    """The parameters at hand are older than allowed."""


class ParamsPublisher:
    """Publishes from a thread of its own, so that the learner never waits for the network."""

    def __init__(self, client: reverb.Client, *, timeout_seconds: float = 60.0):
        self._client = client
        self._timeout_ms = int(timeout_seconds * 1000)
        self._lock = threading.Condition()
        self._pending: tuple[Callable[[], np.ndarray], np.ndarray] | None = None
        self._closing = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="publish", daemon=True)
        self._thread.start()

    def publish(
        self, values_fn: Callable[[], np.ndarray], *, version: int, steps: int, finished: bool
    ) -> None:
        """Hands over a version; one still waiting to be sent is replaced by the newer."""
        header = np.array([version, steps, finished], np.int64)
        with self._lock:
            if self._error is not None:
                raise self._error
            self._pending = (values_fn, header)
            self._lock.notify()

    def close(self, timeout_seconds: float = 10.0) -> None:
        """Sends what is waiting, for so long at most, and ends the thread."""
        with self._lock:
            self._closing = True
            self._lock.notify()
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        writer = self._client.trajectory_writer(num_keep_alive_refs=1)
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._pending is not None or self._closing)
                pending, self._pending = self._pending, None
            if pending is None:
                return
            try:
                self._send(writer, *pending)
            except reverb.DeadlineExceededError as error:
                # The server is away; the next version replaces this one.
                logging.warning("publishing parameters: %s", error)
            except Exception as error:
                with self._lock:
                    self._error = error
                return

    def _send(
        self,
        writer: reverb.TrajectoryWriter,
        values_fn: Callable[[], np.ndarray],
        header: np.ndarray,
    ) -> None:
        writer.append({"header": header, "values": values_fn()})
        newest = {name: column[-1] for name, column in writer.history.items()}
        writer.create_item(tables.PARAMS, 1.0, newest)
        writer.flush(timeout_ms=self._timeout_ms)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The newest parameters a puller has, and for how long there has been none newer."""

    params: PublishedParams
    age_seconds: float


class ParamsPuller:
    """Follows the table from a thread of its own."""

    def __init__(
        self,
        client: reverb.Client,
        *,
        poll_seconds: float = 0.5,
        stale_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._client = client
        self._poll_seconds = poll_seconds
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._newest: PublishedParams | None = None
        self._received_at = clock()
        self._seen_inserts = -1
        self._last_problem = "no answer yet"
        self._error: Exception | None = None
        self._arrived = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pull", daemon=True)
        self._thread.start()

    def get(self) -> Snapshot | None:
        """The newest parameters, or None before the first. Raises when they are stale."""
        if self._error is not None:
            raise self._error
        age = self._clock() - self._received_at
        if age > self._stale_seconds:
            raise StaleParamsError(
                f"no new parameters for {age:.0f} s (limit {self._stale_seconds:.0f} s; "
                f"last problem: {self._last_problem}); is the learner running?"
            )
        newest = self._newest
        return None if newest is None else Snapshot(newest, age)

    def wait_first(self, timeout_seconds: float) -> Snapshot | None:
        """Like `get`, but waits so long for the first version."""
        self._arrived.wait(timeout_seconds)
        return self.get()

    def close(self) -> None:
        """Ends the thread; one that hangs on a dead server dies with the process."""
        self._stop.set()
        self._thread.join(timeout=self._poll_seconds + 1.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._poll()
                self._last_problem = "none: the server answers but has nothing newer"
            except SERVER_AWAY as error:
                # The age says when it has been too long.
                self._last_problem = str(error)
            except Exception as error:
                self._error = error
                self._arrived.set()
                return
            self._stop.wait(self._poll_seconds)

    def _poll(self) -> None:
        info = self._client.server_info(timeout=_INFO_TIMEOUT_SECONDS)[tables.PARAMS]
        inserts = info.rate_limiter_info.insert_stats.completed
        if info.current_size == 0 or inserts == self._seen_inserts:
            return
        sample = next(iter(self._client.sample(tables.PARAMS, emit_timesteps=False)))
        header, values = sample.data
        newest = PublishedParams(int(header[0]), int(header[1]), bool(header[2]), values)
        self._seen_inserts = inserts
        # A replay server restored from an old checkpoint may serve old parameters for a moment.
        if self._newest is not None and newest.version < self._newest.version:
            return
        self._newest, self._received_at = newest, self._clock()
        self._arrived.set()
