"""What the server says of the `replay` table: inserts, samples, size."""

from typing import NamedTuple

import reverb

from reverb_server import tables


class TableCounts(NamedTuple):
    """Counters since the server started (or since the checkpoint it restored)."""

    inserts: int
    samples: int
    size: int


def read_counts(client: reverb.Client, timeout_seconds: int = 5) -> TableCounts:
    """Asks the server; raises RuntimeError when it does not answer in time."""
    info = client.server_info(timeout=timeout_seconds)[tables.REPLAY]
    limiter = info.rate_limiter_info
    return TableCounts(
        limiter.insert_stats.completed, limiter.sample_stats.completed, info.current_size
    )
