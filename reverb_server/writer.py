"""Writes experience: one Reverb stream per game, frames once, items as slices of them."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import reverb

from reverb_server import tables
from reverb_server.client import SERVER_AWAY, OthersAwayError, table_info

_FRAME, _STEP = "frame", "step"
_NEW_PRIORITY = 1.0
# Rows per chunk. Every chunk costs the server a record, and every item a reference to each chunk it
# touches. On Pong (n = 10) a step takes 4.8 KB with chunks of 1 and 1, 3.2 KB with 1 and 10, 2.3 KB
# with 2 and 10: two frames side by side compress into little more than one. Longer frame chunks
# would save little more and send frames nobody asked for.
_FRAME_CHUNK, _STEP_CHUNK = 2, 10
_WAIT_SECONDS = 0.25  # longest wait between two looks at should_stop
_CLOSE_SECONDS = 1.0  # for the last items of all streams together


class WriteTimeoutError(OthersAwayError):
    """The replay server took no items for too long."""


class SignatureError(Exception):
    """The replay table holds items of another shape than this actor makes."""


class Row(Protocol):
    """A single frame, and the fields of `tables.Step`."""

    @property
    def frame(self) -> np.ndarray: ...


class ItemRows(Protocol):
    """The rows of each part of a `tables.Item`, as slices that count back from the newest row."""

    @property
    def o_tm1(self) -> slice: ...
    @property
    def o_t(self) -> slice: ...
    @property
    def steps(self) -> slice: ...


class ExperienceWriter:
    """The streams of one actor. Not thread-safe; use as a context manager."""

    def __init__(
        self,
        client: reverb.Client,
        layout: tables.ItemLayout,
        *,
        num_streams: int,
        should_stop: Callable[[], bool],
        max_pending_items: int = 20,
        timeout_seconds: float = 300.0,
    ):
        """`max_pending_items` bounds what is buffered per stream while inserts are held back."""
        _check_signature(client, layout)
        self._streams = [_Stream(client, layout) for _ in range(num_streams)]
        self._should_stop = should_stop
        self._max_pending_items = max_pending_items
        self._timeout_seconds = timeout_seconds
        self.waited_seconds = 0.0  # time spent held back by the server, for the actor's report

    def write(self, stream: int, rows: Sequence[Row], items: Sequence[ItemRows]) -> None:
        """Appends rows to a stream and inserts the items they complete."""
        self._streams[stream].write(rows, items)
        self._wait_for_room(self._streams[stream])

    def __enter__(self) -> "ExperienceWriter":
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._send_the_rest()
        finally:
            for stream in self._streams:
                stream.close()

    def _wait_for_room(self, stream: "_Stream") -> None:
        started = time.monotonic()
        seconds = min(_WAIT_SECONDS, self._timeout_seconds)
        while not stream.flush(self._max_pending_items, seconds):
            waited = time.monotonic() - started
            if self._should_stop():
                break
            if waited >= self._timeout_seconds:
                raise WriteTimeoutError(
                    f"replay took no items for {waited:.1f} s; is the learner or replay down?"
                )
        self.waited_seconds += time.monotonic() - started

    def _send_the_rest(self) -> None:
        # All streams close their last chunks first, so that they share the wait.
        for stream in self._streams:
            stream.flush(0, 0.0)
        deadline = time.monotonic() + _CLOSE_SECONDS
        sent = [s.flush(0, max(deadline - time.monotonic(), 0.0)) for s in self._streams]
        if not all(sent):
            # Held back by the limiter, or the server is gone: a few steps, not worth waiting for.
            logging.info("left the last items of %d streams unsent", len(sent) - sum(sent))


class _Stream:
    """One TrajectoryWriter."""

    def __init__(self, client: reverb.Client, layout: tables.ItemLayout):
        # An item reaches back over its window, the filler after it, and the first stack. The rest
        # is for items that wait for a chunk to fill: with less, Reverb may send a frame twice.
        keep = 2 * layout.n_step + layout.stack_shape[0] + _STEP_CHUNK
        # Reverb's own check waits for a server that is away, without bound; ours has been made.
        self._writer = client.trajectory_writer(num_keep_alive_refs=keep, validate_items=False)
        for column, length in ((_FRAME, _FRAME_CHUNK), (_STEP, _STEP_CHUNK)):
            self._writer.configure((column,), num_keep_alive_refs=keep, max_chunk_length=length)
        self._history: dict[str, Any] | None = None

    def write(self, rows: Sequence[Row], items: Sequence[ItemRows]) -> None:
        for row in rows:
            self._writer.append({_FRAME: row.frame, _STEP: tables.pack_step(row)})
        if self._history is None:
            # Asking is slow, and the answer is the same growing columns every time.
            self._history = self._writer.history
        frames, steps = self._history[_FRAME], self._history[_STEP]
        for item in items:
            parts = tables.Item(
                o_tm1=frames[item.o_tm1], o_t=frames[item.o_t], steps=steps[item.steps]
            )
            self._writer.create_item(tables.REPLAY, _NEW_PRIORITY, parts._asdict())

    def flush(self, max_pending_items: int, timeout_seconds: float) -> bool:
        """Waits until at most `max_pending_items` are unconfirmed; whether that was in time."""
        # To Reverb, 0 is no limit.
        timeout_ms = max(int(timeout_seconds * 1000), 1)
        try:
            self._writer.flush(max_pending_items, timeout_ms=timeout_ms)
        except reverb.DeadlineExceededError:
            return False
        return True

    def close(self) -> None:
        self._writer.close()


def _check_signature(client: reverb.Client, layout: tables.ItemLayout) -> None:
    """Raises when the table wants other items, or when the server does not answer in time."""
    try:
        theirs = table_info(client, tables.REPLAY).signature
    except SERVER_AWAY as error:
        raise OthersAwayError(f"replay does not answer: {error}") from error
    if theirs != layout.signature():
        raise SignatureError(
            f"replay holds items of {theirs}, this actor makes n_step={layout.n_step}; "
            "all roles of a run must share one config"
        )
