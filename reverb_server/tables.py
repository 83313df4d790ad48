"""The three tables: names, signatures, selectors, limits.

An item of `replay` is two stacks of single frames and `steps`, one row of `STEP_FIELDS` per step of
its window. Scalars share one column because every column of every row is a chunk of its own, with
its own key, header and compression; two columns cost half of what six do.
"""

import dataclasses

import numpy as np
import reverb
import tensorflow as tf

from reverb_server.rate_limit import RateLimit

REPLAY, PARAMS, TELEMETRY = "replay", "params", "telemetry"
STEP_FIELDS = ("action", "reward", "discount", "epsilon", "greedy")
TELEMETRY_ROW_BYTES = 2048


@dataclasses.dataclass(frozen=True)
class Prioritization:
    """Proportional prioritized replay; `None` in its place means uniform."""

    alpha: float  # exponent of the priority
    beta: float  # exponent of the importance correction


def replay_signature(
    n_step: int, frame_shape: tuple[int, int] = (84, 84)
) -> dict[str, tf.TensorSpec]:
    """Shapes and types of one item."""
    return {
        "o_tm1": tf.TensorSpec([4, *frame_shape], tf.uint8),
        "o_t": tf.TensorSpec([4, *frame_shape], tf.uint8),
        "steps": tf.TensorSpec([n_step, len(STEP_FIELDS)], tf.float32),
    }


def params_signature(num_values: int) -> dict[str, tf.TensorSpec]:
    """Flat acting parameters, and `header`: version, global steps, finished."""
    return {
        "header": tf.TensorSpec([3], tf.int64),
        "values": tf.TensorSpec([num_values], tf.float32),
    }


def make_tables(
    *,
    n_step: int,
    capacity_steps: int,
    rate_limit: RateLimit,
    num_params: int,
    prioritization: Prioritization | None,
    telemetry_rows: int = 10_000,
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
        max_size=capacity_steps,
        rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
            samples_per_insert=rate_limit.samples_per_insert,
            min_size_to_sample=rate_limit.warmup_steps,
            error_buffer=rate_limit.error_buffer,
        ),
        signature=replay_signature(n_step),
    )
    params = reverb.Table(
        PARAMS,
        sampler=reverb.selectors.Lifo(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=params_signature(num_params),
    )
    # Never blocks an insert: full means the oldest row goes. Each row is read once.
    telemetry = reverb.Table(
        TELEMETRY,
        sampler=reverb.selectors.Fifo(),
        remover=reverb.selectors.Fifo(),
        max_size=telemetry_rows,
        max_times_sampled=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature={"row": tf.TensorSpec([TELEMETRY_ROW_BYTES], tf.uint8)},
    )
    return [replay, params, telemetry]


def pack_step(
    action: int, reward: float, discount: float, epsilon: float, greedy: int
) -> np.ndarray:
    """One row of `steps`. Action numbers are small, so float32 holds them exactly."""
    return np.array((action, reward, discount, epsilon, greedy), np.float32)


def unpack_steps(steps: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of a batch of `steps`, [B, n, fields] -> names of the learner's transition."""
    source = steps[:, 0]
    return {
        "a_tm1": source[:, 0].astype(np.int32),
        "r_t": np.ascontiguousarray(steps[:, :, 1]),
        "discount_t": np.ascontiguousarray(steps[:, :, 2]),
        "epsilon": np.ascontiguousarray(source[:, 3]),
        "greedy_tm1": source[:, 4].astype(np.int32),
    }
