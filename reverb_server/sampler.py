"""Samples batches of experience from the `replay` table.

The time limit is the server's: while the server is away, a sample waits until it is back. So draw
from a thread of its own (`learner.prefetch`), whose taker has a limit too.
"""

import logging
from typing import Any, NamedTuple

import numpy as np
import reverb
import tensorflow as tf

from reverb_server import range_check, tables


class SampledBatch(NamedTuple):
    """A batch of items, and how it was drawn."""

    o_tm1: np.ndarray  # uint8 [B, stack, height, width]
    o_t: np.ndarray  # uint8 [B, stack, height, width]
    steps: tables.Step  # of columns, float32 [B, n]
    keys: np.ndarray  # uint64 [B]
    weights: np.ndarray  # float32 [B]: importance corrections, at most 1


def make_dataset(
    server_address: str,
    layout: tables.ItemLayout,
    *,
    batch_size: int,
    in_flight_batches: int,
    timeout_seconds: float,
) -> Any:
    """An endless TensorFlow dataset of batches; it ends when the limiter holds it back for long."""
    signature = layout.signature()
    return reverb.TrajectoryDataset(
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


class BatchSampler:
    """An endless source of batches; None when nothing came within the time limit."""

    def __init__(
        self,
        server_address: str,
        layout: tables.ItemLayout,
        *,
        batch_size: int,
        in_flight_batches: int,
        prioritization: tables.Prioritization | None,
        num_actions: int,
        timeout_seconds: float = 2.0,
    ):
        options = tf.data.Options()
        # TensorFlow only moves bytes here; the cores belong to JAX.
        options.threading.private_threadpool_size = 2
        options.threading.max_intra_op_parallelism = 1
        options.experimental_optimization.apply_default_optimizations = False
        self._dataset = make_dataset(
            server_address,
            layout,
            batch_size=batch_size,
            in_flight_batches=in_flight_batches,
            timeout_seconds=timeout_seconds,
        ).with_options(options)
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
        item = tables.Item(**sample.data)
        steps = tables.unpack_steps(item.steps)
        batch = SampledBatch(
            item.o_tm1, item.o_t, steps, sample.info.key, self._weights(sample.info)
        )
        good = range_check.plausible(steps, self._num_actions)
        return batch if good.all() else self._without_junk(batch, good)

    def _without_junk(self, batch: SampledBatch, good: np.ndarray) -> SampledBatch | None:
        """The batch with good items in the places of those no actor can have made."""
        if self.rejected_items == 0:
            logging.error("replay holds items no actor of this run can have made; ignoring them")
        self.rejected_items += int((~good).sum())
        if not good.any():
            return None
        indices = range_check.refill_indices(good)
        return SampledBatch(
            o_tm1=batch.o_tm1[indices],
            o_t=batch.o_t[indices],
            steps=tables.Step(*(column[indices] for column in batch.steps)),
            keys=batch.keys[indices],
            weights=batch.weights[indices],
        )

    def _weights(self, info: reverb.SampleInfo) -> np.ndarray:
        if self._prioritization is None:
            return np.ones(info.key.shape, np.float32)
        # (1 / (N P))^beta, scaled so that the largest of the batch is 1.
        weights = (info.table_size * info.probability) ** -self._prioritization.beta
        return (weights / weights.max()).astype(np.float32)
