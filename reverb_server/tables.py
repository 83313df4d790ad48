"""The three tables: names, signatures, selectors, limits; and what an item of `replay` holds.

An item is one slice of a game's rows, with several transitions in it: single frames, and `steps`,
one line of `Step` for each of them. The numbers of a step share one column because every column of
every row is a chunk of its own, with its own key, header and compression.

Reverb counts items; everyone else counts agent steps and transitions. They are converted by
`ItemLayout` alone.
"""

import dataclasses
import operator
from typing import Any, NamedTuple

import numpy as np
import reverb
import tensorflow as tf

from reverb_server.rate_limit import RateLimit

REPLAY, PARAMS, TELEMETRY = "replay", "params", "telemetry"
TELEMETRY_ROW_BYTES = 2048
_TELEMETRY_ROWS = 10_000
# `header` is version, global steps, finished; `values` the flat acting parameters, however many the
# network has: those who act know, and check.
PARAMS_SIGNATURE = {
    "header": tf.TensorSpec([3], tf.int64),
    "values": tf.TensorSpec([None], tf.float32),
}


class Step(NamedTuple):
    """The numbers of a row, or columns of them; `steps` of an item holds them in this order."""

    action: Any
    reward: Any
    discount: Any
    epsilon: Any
    greedy: Any
    age: Any  # rows before it in its episode, as far as a stack reaches
    final: Any  # 1 for the frame that a truncated episode ended with, else 0


class Item(NamedTuple):
    """The parts of an item of `replay`, which Reverb knows by these names."""

    frames: Any  # uint8 [rows, height, width]
    steps: Any  # float32 [rows, fields of Step]


@dataclasses.dataclass(frozen=True)
class ItemLayout:
    """The sizes that all items of a run share."""

    rows: int
    transitions: int  # agent steps that an item stands for
    frame_shape: tuple[int, int]
    stack_size: int

    def signature(self) -> dict[str, tf.TensorSpec]:
        """Shapes and types of one item."""
        frames = tf.TensorSpec([self.rows, *self.frame_shape], tf.uint8)
        steps = tf.TensorSpec([self.rows, len(Step._fields)], tf.float32)
        return Item(frames=frames, steps=steps)._asdict()

    def items_for(self, steps: int) -> int:
        """Items that hold at least so many steps."""
        return -(-steps // self.transitions)

    def steps_in(self, items: int) -> int:
        """Agent steps, or sampled transitions, in so many items."""
        return items * self.transitions


@dataclasses.dataclass(frozen=True)
class Prioritization:
    """Proportional prioritized replay; `None` in its place means uniform."""

    alpha: float  # exponent of the priority
    beta: float  # exponent of the importance correction


def make_tables(
    *,
    layout: ItemLayout,
    capacity_steps: int,
    rate_limit: RateLimit,
    prioritization: Prioritization | None,
) -> list[reverb.Table]:
    """All tables of a run."""
    sampler = (
        reverb.selectors.Uniform()
        if prioritization is None
        else reverb.selectors.Prioritized(prioritization.alpha)
    )
    replay = reverb.Table(
        REPLAY,
        sampler=sampler,
        remover=reverb.selectors.Fifo(),
        max_size=layout.items_for(capacity_steps),
        rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
            samples_per_insert=rate_limit.samples_per_insert,
            min_size_to_sample=layout.items_for(rate_limit.warmup_steps),
            error_buffer=rate_limit.error_buffer / layout.transitions,
        ),
        signature=layout.signature(),
    )
    params = reverb.Table(
        PARAMS,
        sampler=reverb.selectors.Lifo(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=PARAMS_SIGNATURE,
    )
    # Never blocks an insert: full means the oldest row goes. Each row is read once.
    telemetry = reverb.Table(
        TELEMETRY,
        sampler=reverb.selectors.Fifo(),
        remover=reverb.selectors.Fifo(),
        max_size=_TELEMETRY_ROWS,
        max_times_sampled=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={"row": tf.TensorSpec([TELEMETRY_ROW_BYTES], tf.uint8)},
    )
    return [replay, params, telemetry]


_numbers_of = operator.attrgetter(*Step._fields)


def pack_step(row: Any) -> np.ndarray:
    """The numbers of whatever has the fields of `Step`, float32 [fields].

    Action numbers are small, so float32 holds them exactly.
    """
    return np.array(_numbers_of(row), np.float32)


def unpack_steps(steps: np.ndarray) -> Step:
    """The columns of `steps` [..., fields], each [...]."""
    return Step(*np.moveaxis(steps, -1, 0))
