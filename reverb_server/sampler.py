"""Samples batches of experience from the `replay` table, with a bound on every wait."""

from typing import NamedTuple

import numpy as np
import reverb
import tensorflow as tf

from reverb_server import tables


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
        timeout_seconds: float = 2.0,
    ):
        signature = tables.replay_signature(n_step)
        self._dataset = reverb.TrajectoryDataset(
            server_address,
            table=tables.REPLAY,
            dtypes={name: spec.dtype for name, spec in signature.items()},
            shapes={name: spec.shape for name, spec in signature.items()},
            max_in_flight_samples_per_worker=batch_size * in_flight_batches,
            # One stream keeps what is in flight, and so the realised ratio, exact.
            num_workers_per_iterator=1,
            rate_limiter_timeout_ms=int(timeout_seconds * 1000),
        ).batch(batch_size, drop_remainder=True)
        options = tf.data.Options()
        # TensorFlow only moves bytes here; the cores belong to JAX.
        options.threading.private_threadpool_size = 1
        options.threading.max_intra_op_parallelism = 1
        options.experimental_optimization.apply_default_optimizations = False
        self._dataset = self._dataset.with_options(options)
        self._prioritization = prioritization
        self._iterator = self._dataset.as_numpy_iterator()

    def __call__(self) -> SampledBatch | None:
        """The next batch, or None if the table gave too little in time."""
        try:
            sample = next(self._iterator)
        except StopIteration:
            # The limiter held us back for the whole time limit: start a new stream.
            self._iterator = self._dataset.as_numpy_iterator()
            return None
        data = sample.data
        columns = {"o_tm1": data["o_tm1"], "o_t": data["o_t"], **tables.unpack_steps(data["steps"])}
        return SampledBatch(columns, sample.info.key, self._weights(sample.info))

    def _weights(self, info: reverb.SampleInfo) -> np.ndarray:
        if self._prioritization is None:
            return np.ones(info.key.shape, np.float32)
        # (1 / (N P))^beta, scaled so that the largest of the batch is 1.
        weights = (info.table_size * info.probability) ** -self._prioritization.beta
        return (weights / weights.max()).astype(np.float32)


def update_priorities(client: reverb.Client, keys: np.ndarray, td: np.ndarray) -> None:
    """Sets the priorities of sampled items to their absolute error."""
    # The floor keeps every item reachable.
    priorities = np.abs(td) + 1e-6
    updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
    client.mutate_priorities(tables.REPLAY, updates=updates)
