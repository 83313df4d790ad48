"""Parameters by way of the `params` table: the learner replaces one item, actors copy it.

The values are one flat float32 vector; its header says which version they are, how many agent steps
the run had seen, and whether training is over. Actors ask for the table's insert count, which costs
next to nothing, and copy the values only when it moved. The table takes vectors of any length: the
puller checks that one is as long as its network needs.
"""

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import reverb

from reverb_server import tables
from reverb_server.client import SERVER_AWAY, OthersAwayError, table_info
from reverb_server.params_check import Counters, ParamsLimits, fault_of

_ROUND_SECONDS = 1.0  # longest time in which a publisher with nothing to send comes round
POLL_SECONDS = 0.5  # between two looks of an actor at the table
_NOTHING_NEWER = "none: the server answers but has nothing newer"


class PublishedParams(NamedTuple):
    """One version of the acting parameters."""

    version: int
    steps: int  # global agent steps when it was published
    finished: bool
    values: np.ndarray  # float32 [P]


class StaleParamsError(OthersAwayError):
    """The parameters at hand are older than allowed."""


class _Version(NamedTuple):
    """A version that waits to be sent."""

    values_fn: Callable[[], np.ndarray]
    header: np.ndarray


class ParamsPublisher:
    """Publishes from a thread of its own, so that the learner never waits for the network."""

    def __init__(
        self,
        client: reverb.Client,
        *,
        timeout_seconds: float = 60.0,
        on_round: Callable[[int], None] = lambda version: None,
    ):
        """A version not taken within `timeout_seconds` gives way to a newer one, or is resent.

        The limit is each publisher's own: one in a hurry must not hurry the threads of others.
        `on_round` is told by the thread that it has come round, and the version it sends or has
        sent.
        """
        self._client = client
        self._on_round = on_round
        self._sent_version = 0
        self._timeout_ms = max(int(timeout_seconds * 1000), 1)  # to Reverb, 0 is no limit
        self._lock = threading.Condition()
        self._pending: _Version | None = None
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
            self._pending = _Version(values_fn, header)
            self._lock.notify()

    def close(self, timeout_seconds: float = 10.0) -> None:
        """Sends what is waiting, within the limit. Raises what ended the thread, if anything."""
        with self._lock:
            self._closing = True
            self._lock.notify()
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            logging.warning("the last parameters were not sent: the server does not answer")
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._send_all()
        except Exception as error:
            with self._lock:
                self._error = error

    def _send_all(self) -> None:
        while (sending := self._next_version()) is not None:
            # A stream that failed is given up with what it holds: when the server is back it must
            # get the newest version only.
            writer = self._make_writer()
            try:
                while sending is not None:
                    self._send(writer, sending)
                    sending = self._next_version()
                return
            except reverb.DeadlineExceededError as error:
                logging.warning("publishing parameters: %s", error)
                with self._lock:
                    if self._pending is None and not self._closing:
                        self._pending = sending
            finally:
                writer.close()

    def _next_version(self) -> _Version | None:
        """Waits for a version to send; None when there is none and never will be."""
        with self._lock:
            while not self._lock.wait_for(
                lambda: self._pending is not None or self._closing, _ROUND_SECONDS
            ):
                self._on_round(self._sent_version)
            version, self._pending = self._pending, None
        return version

    def _make_writer(self) -> reverb.TrajectoryWriter:
        # Without validation: it would wait for a server that is away, without bound.
        return self._client.trajectory_writer(num_keep_alive_refs=1, validate_items=False)

    def _send(self, writer: reverb.TrajectoryWriter, version: _Version) -> None:
        self._sent_version = int(version.header[0])
        self._on_round(self._sent_version)
        values = version.values_fn()
        if values.dtype != np.float32 or values.ndim != 1:
            raise ValueError(
                f"parameters of type {values.dtype} and shape {values.shape}; "
                "published is one flat float32 vector"
            )
        writer.append({"header": version.header, "values": values})
        newest = {name: column[-1] for name, column in writer.history.items()}
        writer.create_item(tables.PARAMS, 1.0, newest)
        writer.flush(timeout_ms=self._timeout_ms)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The newest parameters a puller has, and for how long there has been none newer."""

    params: PublishedParams
    age_seconds: float


class ParamsPuller:
    """Follows the table from a thread of its own.

    Takes only what can follow from what it has (`params_check`). An older version is passed over,
    unless nothing newer came for `stale_seconds` although someone publishes: then what it has was
    not the learner's, or the learner has lost it.
    """

    def __init__(
        self,
        client: reverb.Client,
        *,
        limits: ParamsLimits,
        poll_seconds: float = POLL_SECONDS,
        stale_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._client = client
        self._limits = limits
        self._poll_seconds = poll_seconds
        self._stale_seconds = stale_seconds
        self._clock = clock
        self._newest: tuple[PublishedParams, float] | None = None  # and when it came
        self._heard_at = clock()
        self._seen_inserts = -1
        self._last_problem = "no answer yet"
        self.rejected_versions = 0
        self._answer = _NOTHING_NEWER  # what the server holds, once it answers
        self._error: Exception | None = None
        self._arrived = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pull", daemon=True)
        self._thread.start()

    def get(self) -> Snapshot | None:
        """The newest parameters, or None before the first. Raises when they are stale."""
        if self._error is not None:
            raise self._error
        newest, now = self._newest, self._clock()
        silent = now - self._heard_at
        if silent > self._stale_seconds:
            raise StaleParamsError(
                f"no new parameters for {silent:.0f} s (limit {self._stale_seconds:.0f} s; "
                f"last problem: {self._last_problem}); is the learner running?"
            )
        return None if newest is None else Snapshot(newest[0], now - newest[1])

    def wait_first(self, timeout_seconds: float) -> Snapshot | None:
        """Like `get`, but waits up to `timeout_seconds` for the first version."""
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
                self._last_problem = self._answer
            except SERVER_AWAY as error:
                # The age says when it has been too long.
                self._last_problem = str(error)
            except Exception as error:
                self._error = error
                self._arrived.set()
                return
            self._stop.wait(self._poll_seconds)

    def _poll(self) -> None:
        info = table_info(self._client, tables.PARAMS)
        inserts = info.rate_limiter_info.insert_stats.completed
        if info.current_size == 0 or inserts == self._seen_inserts:
            return
        # Goes on by itself when a server that went away is back.
        self._last_problem = "the server went away while sending the values"
        sample = next(iter(self._client.sample(tables.PARAMS, emit_timesteps=False)))
        self._seen_inserts = inserts
        self._take(sample.data)

    def _take(self, data: Sequence[np.ndarray]) -> None:
        now = self._clock()
        before, taken_at = (None, now) if self._newest is None else self._newest
        counters = None if before is None else Counters(before.version, before.steps)
        fault = fault_of(data, self._limits, counters, now - taken_at)
        if fault is not None:
            self._answer = f"the server holds parameters with {fault}"
            if self.rejected_versions == 0:
                logging.error("passing over parameters with %s: not this run's learner's", fault)
            self.rejected_versions += 1
            return
        self._answer = _NOTHING_NEWER
        header, values = data
        newest = PublishedParams(int(header[0]), int(header[1]), bool(header[2]), values)
        self._heard_at = now
        # Older ones come from a replay server restored from its checkpoint, or from a learner
        # restored from its own: it is alive, and will be past them soon.
        if before is not None and newest.version < before.version:
            if now - taken_at <= self._stale_seconds:
                return
            logging.warning(
                "nothing newer than version %d for %.0f s: going on with the learner's, %d",
                before.version,
                self._stale_seconds,
                newest.version,
            )
        self._newest = newest, now
        self._arrived.set()
