"""Writes experience: one Reverb stream per game, frames once, items as slices of them."""

import time
from collections.abc import Callable, Sequence

import numpy as np
import reverb

from reverb_server import tables

StepRow = tuple[np.ndarray, int, float, float, float, int]  # frame, then STEP_FIELDS
ItemRows = tuple[int, int]  # source row, bootstrap row

_FRAME, _STEP = "frame", "step"
_STACK = 4
_NEW_PRIORITY = 1.0


class WriteTimeoutError(Exception):
    """The replay server took no items for too long."""


class ExperienceWriter:
    """The streams of one actor. Not thread-safe; use as a context manager."""

    def __init__(
        self,
        client: reverb.Client,
        *,
        num_streams: int,
        n_step: int,
        should_stop: Callable[[], bool],
        max_pending_items: int = 20,
        timeout_seconds: float = 300.0,
    ):
        """`max_pending_items` bounds what is buffered per stream while inserts are held back."""
        self._streams = [_Stream(client, n_step) for _ in range(num_streams)]
        self._should_stop = should_stop
        self._max_pending_items = max_pending_items
        self._timeout_seconds = timeout_seconds
        self.waited_seconds = 0.0  # time spent held back by the server, for the actor's report

    def write(self, stream: int, rows: Sequence[StepRow], items: Sequence[ItemRows]) -> None:
        """Appends rows to a stream and inserts the items they complete."""
        self._streams[stream].write(rows, items)
        self._flush(stream, self._max_pending_items)

    def end_episode(self, stream: int) -> None:
        """Starts the stream's row numbers anew."""
        self._streams[stream].end_episode()

    def __enter__(self) -> "ExperienceWriter":
        return self

    def __exit__(self, *exc_info: object) -> None:
        for stream in self._streams:
            stream.close()

    def _flush(self, stream: int, max_pending_items: int) -> None:
        started = time.monotonic()
        while not self._streams[stream].flush(max_pending_items):
            waited = time.monotonic() - started
            if self._should_stop():
                break
            if waited > self._timeout_seconds:
                raise WriteTimeoutError(
                    f"replay took no items for {waited:.0f} s; is the learner or replay down?"
                )
        self.waited_seconds += time.monotonic() - started


class _Stream:
    """One TrajectoryWriter, with row numbers per episode."""

    def __init__(self, client: reverb.Client, n_step: int):
        # An item reaches back over its window, the filler after it, and the first stack.
        keep = 2 * n_step + _STACK
        self._n_step = n_step
        self._writer = client.trajectory_writer(num_keep_alive_refs=keep)
        for column in (_FRAME, _STEP):
            self._writer.configure((column,), num_keep_alive_refs=keep, max_chunk_length=1)
        self._num_rows = 0

    def write(self, rows: Sequence[StepRow], items: Sequence[ItemRows]) -> None:
        for frame, *step in rows:
            self._writer.append({_FRAME: frame, _STEP: tables.pack_step(*step)})
        self._num_rows += len(rows)
        frames, steps = self._writer.history[_FRAME], self._writer.history[_STEP]
        for source, bootstrap in items:
            trajectory = {
                "o_tm1": frames[self._back(source - _STACK + 1, source + 1)],
                "o_t": frames[self._back(bootstrap - _STACK + 1, bootstrap + 1)],
                "steps": steps[self._back(source, source + self._n_step)],
            }
            self._writer.create_item(tables.REPLAY, _NEW_PRIORITY, trajectory)

    def _back(self, start: int, stop: int) -> slice:
        """Rows [start, stop) of this episode, counted from the newest row, as Reverb wants it."""
        # A stop of 0 would mean "before the newest"; None means "through the newest".
        return slice(start - self._num_rows, (stop - self._num_rows) or None)

    def flush(self, max_pending_items: int) -> bool:
        """True once at most `max_pending_items` are unconfirmed; waits a second at most."""
        try:
            self._writer.flush(block_until_num_items=max_pending_items, timeout_ms=1000)
        except reverb.DeadlineExceededError:
            return False
        return True

    def end_episode(self) -> None:
        self._num_rows = 0

    def close(self) -> None:
        # Items the limiter still holds back are given a moment; a dead server must not hold us.
        self.flush(0)
        self._writer.close()
