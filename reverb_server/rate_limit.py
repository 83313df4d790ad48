"""How far sampling and inserting may run apart, in numbers that cannot deadlock.

Reverb keeps `inserts * samples_per_insert - samples` within a band around its value at the end of
the warm-up. The learner's streams take whole batches and hold some more in flight; actors insert
one item at a time. If the band is narrower than both together, the learner can wait for items the
actors are not allowed to insert. All numbers here are of agent steps and sampled transitions;
`reverb_server.tables` turns them into items. Plain arithmetic: checking a config needs no Reverb.
"""

import dataclasses
import math


class RateLimitError(ValueError):
    """Settings under which actors and learner could deadlock."""


@dataclasses.dataclass(frozen=True)
class RateLimit:
    """A sample-to-insert ratio with the half-width of its band, in samples."""

    samples_per_insert: float
    warmup_steps: int
    error_buffer: float


def make_rate_limit(
    *,
    samples_per_insert: float,
    warmup_steps: int,
    batch_size: int,
    in_flight_batches: int,
    item_transitions: int,
    error_buffer: float | None = None,
) -> RateLimit:
    """Chooses the narrowest comfortable band, or checks the given one."""
    if not 0 < samples_per_insert < math.inf:
        raise RateLimitError(
            f"samples_per_insert={samples_per_insert:g} must be greater than 0 and finite"
        )
    # The learner's next batch, those in flight, and the insert that must still be allowed; Reverb
    # itself wants room for two inserts, or two samples.
    per_item = samples_per_insert * item_transitions
    needed = max(
        batch_size * (1 + in_flight_batches) + per_item, 2 * per_item, 2.0 * item_transitions
    )
    if error_buffer is None:
        # Four times the least: the two sides then rarely touch both ends of the band.
        error_buffer = 4.0 * needed
    if not 2 * error_buffer >= needed:
        raise RateLimitError(
            f"error_buffer={error_buffer:g} can deadlock: with {batch_size} steps sampled at once "
            f"by {in_flight_batches} streams and samples_per_insert={samples_per_insert:g} it must "
            f"be at least {needed / 2:g}"
        )
    if warmup_steps < batch_size:
        raise RateLimitError(
            f"warmup_steps={warmup_steps} is less than the {batch_size} steps sampled at once; "
            "raise it, or lower batch_size or updates_per_dispatch"
        )
    return RateLimit(samples_per_insert, warmup_steps, error_buffer)
