"""Draws items one by one and looks at each: for a table that holds what is no item of ours.

The server takes items of any shape from whoever does not ask it to check, and the quick way of
sampling fails on a whole batch without saying which item was at fault. This way is several times
slower, but it knows each item's key: what does not fit is deleted from the table.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from typing import NamedTuple

import numpy as np
import reverb

from reverb_server import tables
from reverb_server.client import SERVER_AWAY


class Drawn(NamedTuple):
    """Items that fit, and the number of those that did not and were deleted."""

    samples: list[reverb.ReplaySample]  # `data` in the order of `tables.Item`
    num_deleted: int


class CarefulDraw:
    """Looks at items in a thread of its own, because Reverb's call has no time limit."""

    def __init__(self, client: reverb.Client, layout: tables.ItemLayout):
        self._client = client
        self._expected = _kinds(layout)
        self._pending: Future[Drawn] | None = None

    def __call__(self, num_items: int, timeout_seconds: float) -> Drawn | None:
        """So many items; None while the rate limiter holds them back, or the server is away.

        What was asked for is not lost then: the next call, whatever it asks for, waits for it.
        """
        if self._pending is None:
            self._pending = Future()
            thread = threading.Thread(
                target=self._run, args=(num_items, self._pending), name="look", daemon=True
            )
            thread.start()
        if not wait([self._pending], timeout_seconds).done:
            return None
        answer, self._pending = self._pending, None
        return answer.result()

    def _run(self, num_items: int, answer: Future[Drawn]) -> None:
        try:
            answer.set_result(self._draw(num_items))
        except BaseException as error:
            answer.set_exception(error)

    def _draw(self, num_items: int) -> Drawn:
        good: list[reverb.ReplaySample] = []
        bad: set[int] = set()
        for sample in self._client.sample(tables.REPLAY, num_items, emit_timesteps=False):
            columns = [np.asarray(column) for column in sample.data]
            if [(column.shape, column.dtype) for column in columns] == self._expected:
                item = tables.Item(**dict(zip(_SENT_ORDER, columns, strict=True)))
                good.append(sample._replace(data=item))
            else:
                bad.add(sample.info.key)
        delete(self._client, bad)
        return Drawn(good, len(bad))


def delete(client: reverb.Client, keys: set[int]) -> None:
    """Takes items out of the table; those that are gone already are passed over."""
    if keys:
        with _unless_away():
            client.mutate_priorities(tables.REPLAY, deletes=sorted(keys))


def empty(client: reverb.Client) -> None:
    """Takes out everything: anyone who can spoil a table so far could have done this too."""
    with _unless_away():
        client.reset(tables.REPLAY)


@contextlib.contextmanager
def _unless_away() -> Iterator[None]:
    """Leaves it at a warning if the server goes away meanwhile: what stays is met again."""
    try:
        yield
    except SERVER_AWAY as error:
        logging.warning("replay went away before it deleted what is no item of ours: %s", error)


_SENT_ORDER = sorted(tables.Item._fields)  # of the columns of an item, as Reverb flattens it


def _kinds(layout: tables.ItemLayout) -> list[tuple[tuple[int, ...], np.dtype]]:
    signature = layout.signature()
    specs = (signature[name] for name in _SENT_ORDER)
    return [(tuple(spec.shape), np.dtype(spec.dtype.as_numpy_dtype)) for spec in specs]
