"""Asking the server: whether it answers, and what its tables have counted."""

from typing import Any, NamedTuple

import reverb

from reverb_server import tables

# What Reverb raises when its server is away: gRPC failures, and its own time-outs.
SERVER_AWAY = (RuntimeError, reverb.ReverbError)
_ANSWER_SECONDS = 5


class OthersAwayError(Exception):
    """Another role was away for longer than this one waits: no fault of the one who says it."""


class TableCounts(NamedTuple):
    """Counters of `replay` since the server started (or since the checkpoint it restored).

    In agent steps and sampled transitions.
    """

    inserts: int
    samples: int
    size: int


def table_info(client: reverb.Client, table: str, timeout_seconds: int = _ANSWER_SECONDS) -> Any:
    """Reverb's own description of a table; raises RuntimeError without an answer in time."""
    return client.server_info(timeout=timeout_seconds)[table]


def read_counts(
    client: reverb.Client, layout: tables.ItemLayout, timeout_seconds: int = _ANSWER_SECONDS
) -> TableCounts:
    """What the `replay` table has counted so far."""
    info = table_info(client, tables.REPLAY, timeout_seconds)
    limiter = info.rate_limiter_info
    return TableCounts(
        inserts=layout.steps_in(limiter.insert_stats.completed),
        samples=layout.steps_in(limiter.sample_stats.completed),
        size=layout.steps_in(info.current_size),
    )
