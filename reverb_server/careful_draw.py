"""Draws items one by one and looks at each: for a table that holds what is no item of ours.

The server takes items of any shape from whoever does not ask it to check, and the quick way of
sampling fails on a whole batch without saying which item was at fault. This way is several times
slower, but it knows each item's key: what does not fit is deleted from the table.
"""

from typing import NamedTuple

import numpy as np
import reverb

from reverb_server import tables


class Drawn(NamedTuple):
    """Items that fit, and the number of those that did not and were deleted."""

    samples: list[reverb.ReplaySample]  # `data` in the order of `tables.Item`
    num_deleted: int


def draw(client: reverb.Client, layout: tables.ItemLayout, num_items: int) -> Drawn:
    """Looks at so many items. Waits for as long as the rate limiter does, or the server is away."""
    expected = _kinds(layout)
    good: list[reverb.ReplaySample] = []
    bad: set[int] = set()
    for sample in client.sample(tables.REPLAY, num_items, emit_timesteps=False):
        columns = [np.asarray(column) for column in sample.data]
        if [(column.shape, column.dtype) for column in columns] == expected:
            item = tables.Item(**dict(zip(_SENT_ORDER, columns, strict=True)))
            good.append(sample._replace(data=item))
        else:
            bad.add(sample.info.key)
    delete(client, bad)
    return Drawn(good, len(bad))


def delete(client: reverb.Client, keys: set[int]) -> None:
    """Takes items out of the table; those that are gone already are passed over."""
    if keys:
        client.mutate_priorities(tables.REPLAY, deletes=sorted(keys))


_SENT_ORDER = sorted(tables.Item._fields)  # of the columns of an item, as Reverb flattens it


def _kinds(layout: tables.ItemLayout) -> list[tuple[tuple[int, ...], np.dtype]]:
    signature = layout.signature()
    specs = (signature[name] for name in _SENT_ORDER)
    return [(tuple(spec.shape), np.dtype(spec.dtype.as_numpy_dtype)) for spec in specs]
