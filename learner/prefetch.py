"""Keeps a few batches ready on the device while the learner computes.

A thread for each source draws from it and transfers; the loop takes with a bound. Whatever ends a
thread surfaces in `get`: an error is raised there, never lost.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_JOIN_SECONDS = 10.0


class Prefetcher(Generic[T]):
    """A bounded buffer filled by one thread per source. Use as a context manager."""

    def __init__(self, *sources: Callable[[], T | None], depth: int = 2):
        """A source returns the next batch, or None if none came within its own time limit."""
        if depth < 1:
            raise ValueError(f"depth={depth}: at least one batch must fit")
        self._queue: queue.Queue[T] = queue.Queue(maxsize=depth)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._rounds = [0] * len(sources)
        self._threads = [
            threading.Thread(target=self._fill, args=numbered, name="prefetch", daemon=True)
            for numbered in enumerate(sources)
        ]

    def __enter__(self) -> "Prefetcher[T]":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        # Sources bound their own waits, so this is short; a dead server must not hold us.
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            thread.join(timeout=max(deadline - time.monotonic(), 0.0))

    @property
    def rounds(self) -> int:
        """How often sources have answered, with a batch or without."""
        return sum(self._rounds)

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

    def _fill(self, number: int, source: Callable[[], T | None]) -> None:
        try:
            while not self._stop.is_set():
                item = source()
                self._rounds[number] += 1
                if item is not None:
                    self._put(item)
        except BaseException as error:
            self._error = error
            self._stop.set()  # the others must not hide it by going on

    def _put(self, item: T) -> None:
        while not self._stop.is_set():
            try:
                return self._queue.put(item, timeout=0.2)
            except queue.Full:
                continue
