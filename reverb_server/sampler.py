"""Samples batches of experience from the `replay` table, and sends new priorities back.

The time limit is the server's: while the server is away, a sample waits until it is back. So draw
from a thread of its own (`learner.prefetch`), whose taker has a limit too.
"""

import logging
import queue
import threading
from typing import Any, NamedTuple

import numpy as np
import reverb
import tensorflow as tf

from reverb_server import range_check, tables


class SampledBatch(NamedTuple):
    """A batch as numpy columns, named as the learner's transition, and how it was drawn."""

    columns: dict[str, np.ndarray]
    keys: np.ndarray  # uint64 [B]
    weights: np.ndarray  # float32 [B]: importance corrections, at most 1


class BatchSampler:
    """An endless source of batches; None when nothing came within the time limit."""

    def __init__(
        self,
        server_address: str,
        *,
        n_step: int,
        batch_size: int,
        in_flight_batches: int,
        prioritization: tables.Prioritization | None,
        num_actions: int = range_check.MAX_ACTIONS,
        timeout_seconds: float = 2.0,
    ):
        signature = tables.replay_signature(n_step)
        self._dataset = reverb.TrajectoryDataset(
            server_address,
            table=tables.REPLAY,
            dtypes={name: spec.dtype for name, spec in signature.items()},
            shapes={name: spec.shape for name, spec in signature.items()},
            # Unpacking is most of the work, and a stream has one thread for it. What is in
            # flight, and so how far the ratio may be off, is the same as with a single stream.
            max_in_flight_samples_per_worker=batch_size,
            num_workers_per_iterator=in_flight_batches,
            rate_limiter_timeout_ms=int(timeout_seconds * 1000),
        ).batch(batch_size, drop_remainder=True)
        options = tf.data.Options()
        # TensorFlow only moves bytes here; the cores belong to JAX.
        options.threading.private_threadpool_size = 2
        options.threading.max_intra_op_parallelism = 1
        options.experimental_optimization.apply_default_optimizations = False
        self._dataset = self._dataset.with_options(options)
        self._prioritization = prioritization
        self._num_actions = num_actions
        self.rejected_items = 0  # sampled, but not from an actor
        self._iterator = self._dataset.as_numpy_iterator()

    def __call__(self) -> SampledBatch | None:
        """The next batch, or None if the table gave too little in time."""
        try:
            sample = next(self._iterator)
        except StopIteration:
            # The limiter held us back for the whole time limit: start a new stream.
            self._iterator = self._dataset.as_numpy_iterator()
            return None
        return self._checked(sample)

    def _checked(self, sample: reverb.ReplaySample) -> SampledBatch | None:
        """The batch; good items take the places of those no actor can have made."""
        data, keys, weights = sample.data, sample.info.key, self._weights(sample.info)
        good = range_check.plausible(data["steps"], self._num_actions)
        if not good.all():
            self._reject(int((~good).sum()))
            if not good.any():
                return None
            numbers = range_check.stand_ins(good)
            data = {name: column[numbers] for name, column in data.items()}
            keys, weights = keys[numbers], weights[numbers]
        columns = {"o_tm1": data["o_tm1"], "o_t": data["o_t"], **tables.unpack_steps(data["steps"])}
        return SampledBatch(columns, keys, weights)

    def _reject(self, num_items: int) -> None:
        if self.rejected_items == 0:
            logging.error("replay holds items no actor of this run can have made; ignoring them")
        self.rejected_items += num_items

    def _weights(self, info: reverb.SampleInfo) -> np.ndarray:
        if self._prioritization is None:
            return np.ones(info.key.shape, np.float32)
        # (1 / (N P))^beta, scaled so that the largest of the batch is 1.
        weights = (info.table_size * info.probability) ** -self._prioritization.beta
        return (weights / weights.max()).astype(np.float32)


class PriorityUpdater:
    """Sends priorities from a thread of its own: a server that is away must not hold the learner.

    What the server is too slow to take is dropped and counted.
    """

    def __init__(self, client: reverb.Client, *, max_waiting: int = 16):
        self._client = client
        self._queue: queue.Queue[tuple[np.ndarray, Any] | None] = queue.Queue(max_waiting)
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
        """Sends what is waiting, for so long at most. Raises what ended the thread, if anything."""
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
    """Sets the priorities of sampled items to their absolute error. Waits for the server."""
    # The floor keeps every item reachable.
    priorities = np.abs(td) + 1e-6
    updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
    client.mutate_priorities(tables.REPLAY, updates=updates)
