"""Samples batches of experience from the `replay` table.

The time limit is the server's: while the server is away, a sample waits until it is back. So draw
from a thread of its own (`learner.prefetch`), whose taker has a limit too.
"""

import logging
from typing import Any, NamedTuple

import numpy as np
import reverb
import tensorflow as tf

from reverb_server import careful_draw, range_check, tables

_WAIT_SECONDS = 2.0  # for a batch


class SampledBatch(NamedTuple):
    """A batch of items, and how it was drawn."""

    frames: np.ndarray  # uint8 [B, rows, height, width]
    steps: tables.Step  # of columns, float32 [B, rows]
    keys: np.ndarray  # uint64 [B]
    weights: np.ndarray  # float32 [B]: importance corrections, at most 1


def make_dataset(
    server_address: str,
    layout: tables.ItemLayout,
    *,
    batch_size: int,
    timeout_seconds: float,
) -> Any:
    """An endless TensorFlow dataset of batches; it ends when the limiter holds it back for long."""
    signature = layout.signature()
    return reverb.TrajectoryDataset(
        server_address,
        table=tables.REPLAY,
        dtypes={name: spec.dtype for name, spec in signature.items()},
        shapes={name: spec.shape for name, spec in signature.items()},
        max_in_flight_samples_per_worker=batch_size,
        num_workers_per_iterator=1,
        rate_limiter_timeout_ms=int(timeout_seconds * 1000),
    ).batch(batch_size, drop_remainder=True)


class _Odds(NamedTuple):
    """What the weights of prioritized items depend on."""

    table_size: Any
    probability: Any
    priority: Any


class _Drawn(NamedTuple):
    """What is used of Reverb's answer: Python pays for every column of it, once a call."""

    item: tables.Item
    key: Any
    odds: _Odds | tuple[()]


def _drawn(data: tables.Item, info: reverb.SampleInfo, prioritized: bool) -> _Drawn:
    odds = _Odds(info.table_size, info.probability, info.priority)
    return _Drawn(data, info.key, odds if prioritized else ())


class BatchSampler:
    """An endless source of batches; None when nothing came within the time limit.

    It is one stream, whose items are unpacked by a thread of Reverb's. Whoever has more cores for
    sampling opens several.
    """

    def __init__(
        self,
        server_address: str,
        layout: tables.ItemLayout,
        *,
        batch_size: int,
        prioritization: tables.Prioritization | None,
        num_actions: int,
    ):
        """A batch has `batch_size` items; `num_actions` bounds what an actor can have done."""
        options = tf.data.Options()
        # TensorFlow only moves bytes here; the cores belong to JAX.
        options.threading.private_threadpool_size = 1
        options.threading.max_intra_op_parallelism = 1
        options.experimental_optimization.apply_default_optimizations = False
        dataset = make_dataset(
            server_address,
            layout,
            batch_size=batch_size,
            timeout_seconds=_WAIT_SECONDS,
        )
        self._dataset = (
            dataset.map(
                lambda sample: _drawn(
                    tables.Item(**sample.data), sample.info, prioritization is not None
                )
            )
            .prefetch(1)  # batches are put together by TensorFlow's thread, not by Python's
            .with_options(options)
        )
        self._client = reverb.Client(server_address)
        self._batch_size = batch_size
        self._prioritization = prioritization
        self._ranges = range_check.Ranges(num_actions, layout.stack_size)
        # What a stream may have taken from the table without handing it over: what is in flight,
        # a batch being put together, one that waits in the dataset, and one on its way to us.
        self.stream_items = 4 * batch_size
        self._draw = careful_draw.CarefulDraw(self._client, layout)
        self._careful_items = 0  # still to be drawn one by one
        self._quick_items = 0  # since the last that did not fit
        self.rejected_items = 0  # sampled, but not from an actor
        self.max_samples = 0  # most that the table can have counted on our account
        self._iterator = self._new_stream()

    def __call__(self) -> SampledBatch | None:
        """The next batch, or None if the table gave too little in time, or nothing that fits."""
        if self._careful_items > 0:
            return self._draw_carefully()
        try:
            drawn = next(self._iterator)
        except StopIteration:
            # The limiter held us back for the whole time limit: start a new stream.
            self._iterator = self._new_stream()
            return None
        except tf.errors.InvalidArgumentError as error:
            self._reject(1, str(error).splitlines()[0])
            # As many again as it took to meet one, and more: most that are like it will be met.
            self._careful_items = max(3 * self._quick_items, 10 * self._batch_size)
            return None
        self._quick_items += self._batch_size
        self.max_samples += self._batch_size
        return self._checked(drawn)

    def _new_stream(self) -> Any:
        self.max_samples += self.stream_items
        self._quick_items = 0
        return self._dataset.as_numpy_iterator()

    def _draw_carefully(self) -> SampledBatch | None:
        drawn = self._draw(self._batch_size, _WAIT_SECONDS)
        if drawn is None:
            return None
        self.max_samples += self._batch_size
        self._careful_items -= self._batch_size
        if drawn.num_deleted:
            self._reject(drawn.num_deleted, "items of another shape")
        if self._careful_items <= 0:
            self._iterator = self._new_stream()
        if not drawn.samples:
            return None
        # The places of those that did not fit go to the others in turn.
        samples = [drawn.samples[i % len(drawn.samples)] for i in range(self._batch_size)]
        item = tables.Item(*map(np.stack, zip(*(s.data for s in samples), strict=True)))
        info = reverb.SampleInfo(*map(np.array, zip(*(s.info for s in samples), strict=True)))
        info = info._replace(key=info.key.astype(np.uint64))
        return self._checked(_drawn(item, info, self._prioritization is not None))

    def _checked(self, drawn: _Drawn) -> SampledBatch | None:
        """A batch of the good items, in the places of the others too; None if there is none."""
        good = self._ranges.plausible(drawn.item.steps)
        if isinstance(drawn.odds, _Odds):
            good &= range_check.plausible_priorities(drawn.odds.priority)
        if not good.all():
            self._reject(int((~good).sum()), "values out of range")
            careful_draw.delete(self._client, set(drawn.key[~good].tolist()))
        if isinstance(drawn.odds, _Odds) and good.any():
            good &= range_check.usable_odds(drawn.odds.probability)
            if not good.any():
                self._start_over()
        if not good.any():
            return None
        if not good.all():
            drawn = _rows_of(drawn, range_check.refill_indices(good))
        steps = tables.unpack_steps(drawn.item.steps)
        return SampledBatch(drawn.item.frames, steps, drawn.key, self._weights(drawn))

    def _reject(self, num_items: int, what: str) -> None:
        if self.rejected_items == 0:
            logging.error(
                "replay holds items no actor of this run can have made; passing over them and "
                "deleting them (%s)",
                what,
            )
        self.rejected_items += num_items

    def _start_over(self) -> None:
        """Empties a table that gives one item again and again, and no odds for it.

        Once Reverb has an infinite priority in its sums, they stay infinite or NaN, whatever is
        deleted; and the item that it came with is never drawn.
        """
        logging.error("someone spoilt the priorities of replay beyond use: emptying it")
        careful_draw.empty(self._client)
        self._iterator = self._new_stream()

    def _weights(self, drawn: _Drawn) -> np.ndarray:
        if self._prioritization is None or not isinstance(drawn.odds, _Odds):
            return np.ones(drawn.key.shape, np.float32)
        # (1 / (N P))^beta, scaled so that the largest of the batch is 1.
        weights = (drawn.odds.table_size * drawn.odds.probability) ** -self._prioritization.beta
        return (weights / weights.max()).astype(np.float32)


def _rows_of(drawn: _Drawn, indices: np.ndarray) -> _Drawn:
    return tf.nest.map_structure(lambda column: column[indices], drawn)
