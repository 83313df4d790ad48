"""Writes experience: one Reverb stream per game, frames once, items as slices of it."""

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
# Rows per chunk. Every chunk costs the server a record and the sampler a parse; frames side by side
# compress well, but frames of a chunk that an item does not show are sent in vain. On Pong a step
# takes 2.1 KB with chunks of 1 frame, 1.4 KB with 2, 1.1 KB with 4.
_FRAME_CHUNK, _STEP_CHUNK = 4, 10
_PENDING_STEPS = 20  # buffered per stream while inserts are held back
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


class ExperienceWriter:
    """The streams of one actor. Not thread-safe; use as a context manager."""

    def __init__(
        self,
        client: reverb.Client,
        layout: tables.ItemLayout,
        *,
        num_streams: int,
        should_stop: Callable[[], bool],
        timeout_seconds: float = 300.0,
    ):
        _check_signature(client, layout)
        self._streams = [_Stream(client, layout) for _ in range(num_streams)]
        self._should_stop = should_stop
        self._max_pending_items = layout.items_for(_PENDING_STEPS)
        self._timeout_seconds = timeout_seconds
        self.waited_seconds = 0.0  # time spent held back by the server, for the actor's report

    def write(self, stream: int, rows: Sequence[Row], items: Sequence[slice]) -> None:
        """Appends rows to a stream and inserts the items they complete.

        An item is a slice of the stream that counts back from the newest row.
        """
        self._streams[stream].write(rows, items)
        self._wait_for_room(self._streams[stream], self._max_pending_items)

    def settle(self) -> None:
        """Waits until the server has everything that was written so far."""
        for stream in self._streams:
            self._wait_for_room(stream, max_pending_items=0)

    @property
    def max_pending_items(self) -> int:
        """Items of all streams that may be under way."""
        return len(self._streams) * self._max_pending_items

    def __enter__(self) -> "ExperienceWriter":
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._send_the_rest()
        finally:
            for stream in self._streams:
                stream.close()

    def _wait_for_room(self, stream: "_Stream", max_pending_items: int) -> None:
        started = time.monotonic()
        seconds = min(_WAIT_SECONDS, self._timeout_seconds)
        while not stream.flush(max_pending_items, seconds):
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
        # The rows of an item, and those of items that wait for a chunk to fill: with less, Reverb
        # may send a frame twice.
        keep = layout.rows + _STEP_CHUNK + _FRAME_CHUNK
        # Reverb's own check waits for a server that is away, without bound; ours has been made.
        self._writer = client.trajectory_writer(num_keep_alive_refs=keep, validate_items=False)
        for column, length in ((_FRAME, _FRAME_CHUNK), (_STEP, _STEP_CHUNK)):
            self._writer.configure((column,), num_keep_alive_refs=keep, max_chunk_length=length)
        self._history: dict[str, Any] | None = None

    def write(self, rows: Sequence[Row], items: Sequence[slice]) -> None:
        for row in rows:
            self._writer.append({_FRAME: row.frame, _STEP: tables.pack_step(row)})
        if self._history is None:
            # Asking is slow, and the answer is the same growing columns every time.
            self._history = self._writer.history
        frames, steps = self._history[_FRAME], self._history[_STEP]
        for item in items:
            parts = tables.Item(frames=frames[item], steps=steps[item])
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
            f"replay holds items of {theirs}, this actor makes items of {layout.rows} rows; "
            "all roles of a run must share one config"
        )
