"""Whether parameters that came over the port can be those of this run's learner.

Anyone who reaches the port can publish some. They are believed only as far as they can follow from
the ones before: finite values of the right number, and counters that the run can have reached.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# No device makes as many updates, and no fleet as many steps, in a second.
_MAX_UPDATES_PER_SECOND = 10_000
_MAX_STEPS_PER_SECOND = 1_000_000


class Counters(NamedTuple):
    """How far a run is, or can be."""

    version: int  # updates
    steps: int  # global agent steps


class ParamsLimits(NamedTuple):
    """What the parameters of a run can be."""

    num_values: int
    most: Counters


def fault_of(
    data: Sequence[np.ndarray], limits: ParamsLimits, before: Counters | None, seconds: float
) -> str | None:
    """Why header and values, `seconds` after others with counters `before`, are not the learner's.

    None where nothing speaks against them.
    """
    shapes = [column.shape for column in data]
    if shapes != [(3,), (limits.num_values,)]:
        return f"columns of shapes {shapes} where this network has {limits.num_values} values"
    header, values = data
    if header.dtype != np.int64 or values.dtype != np.float32:
        return f"columns of types {header.dtype} and {values.dtype}"
    most = limits.most if before is None else _reachable(limits.most, before, seconds)
    found = Counters(int(header[0]), int(header[1]))
    for name, number, highest in zip(Counters._fields, found, most, strict=True):
        if not 0 <= number <= highest:
            return f"{name} {number} where {highest} is the most there can be"
    if not np.isfinite(values).all():
        return "values that are not finite"
    return None


def _reachable(most: Counters, before: Counters, seconds: float) -> Counters:
    # A minute on top, for publications that were held back.
    seconds += 60.0
    return Counters(
        min(most.version, before.version + int(seconds * _MAX_UPDATES_PER_SECOND)),
        min(most.steps, before.steps + int(seconds * _MAX_STEPS_PER_SECOND)),
    )
