"""Samples batches of experience from the `replay` table.

The time limit is the server's: while the server is away, a sample waits until it is back. So draw
from a thread of its own (`learner.prefetch`), whose taker has a limit too.
"""

import logging
from typing import NamedTuple

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
