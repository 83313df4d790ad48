"""Keeps a few batches ready on the device while the learner computes.

A thread draws from the source and transfers; the loop takes with a bound. Whatever ends the thread
surfaces in `get`: an error is raised there, never lost.
"""

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetcher(Generic[T]):
    """A bounded buffer filled by one thread. Use as a context manager."""

    def __init__(self, source: Callable[[], T | None], *, depth: int = 2):
        """`source` returns the next batch, or None if none came within its own time limit."""
        if depth < 1:
            raise ValueError(f"depth={depth}: at least one batch must fit")
        self._source = source
        self._queue: queue.Queue[T] = queue.Queue(maxsize=depth)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self.rounds = 0  # how often the source has answered, with a batch or without
        self._thread = threading.Thread(target=self._fill, name="prefetch", daemon=True)

    def __enter__(self) -> "Prefetcher[T]":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        # The source bounds its own waits, so this join is short; a dead server must not hold us.
        self._thread.join(timeout=10.0)

    @property
    def ready(self) -> int:
        """Batches that wait to be taken."""
        return self._queue.qsize()

    def get(self, timeout_seconds: float) -> T | None:
        """The next batch, or None after `timeout_seconds` without one."""
        try:
            # After an error there is what was drawn before it, and nothing to wait for.
            return self._queue.get(timeout=timeout_seconds if self._error is None else 0.0)
        except queue.Empty:
            if self._error is not None:
                raise self._error from None
            return None

    def _fill(self) -> None:
        try:
            while not self._stop.is_set():
                item = self._source()
                self.rounds += 1
                if item is not None:
                    self._put(item)
        except BaseException as error:
            self._error = error

    def _put(self, item: T) -> None:
        while not self._stop.is_set():
            try:
                return self._queue.put(item, timeout=0.2)
            except queue.Full:
                continue
