"""The prefetch thread: order, bound, errors, and a stop that does not hang.

Threads meet at events and queues; the limits in seconds are only reached if something is broken.
"""

import queue
import threading
from collections.abc import Callable

import pytest

from learner.prefetch import Prefetcher

LIMIT = 30.0


def prefetch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def finite(items: list[int]) -> Callable[[], int | None]:
    """A source of these items that then has nothing, within its own time limit."""
    rest, idle = iter(items), threading.Event()

    def source() -> int | None:
        item = next(rest, None)
        if item is None:
            idle.wait(0.01)
        return item

    return source


def test_batches_come_in_order_and_none_is_lost() -> None:
    with Prefetcher(finite(list(range(100))), depth=3) as prefetcher:
        assert [prefetcher.get(LIMIT) for _ in range(100)] == list(range(100))
        assert prefetcher.get(0.0) is None
        assert prefetcher.rounds >= 100


def test_no_more_is_drawn_than_fits() -> None:
    depth, begun, ahead = 2, 0, []
    drawn: queue.Queue[int] = queue.Queue()

    def source() -> int:
        number = drawn.qsize() + 1
        ahead.append(number - begun)
        drawn.put(number)
        return number

    with Prefetcher(source, depth=depth) as prefetcher:
        for _ in range(50):
            begun += 1
            prefetcher.get(LIMIT)
    # `depth` in the buffer and one in the thread's hand.
    assert max(ahead) <= depth + 1


def test_the_buffer_is_filled_ahead_of_the_taker() -> None:
    drawn = threading.Semaphore(0)

    def source() -> int:
        drawn.release()
        return 0

    with Prefetcher(source, depth=2):
        for _ in range(3):
            assert drawn.acquire(timeout=LIMIT)


def test_without_a_batch_the_taker_gets_none_in_time() -> None:
    with Prefetcher(finite([])) as prefetcher:
        assert prefetcher.get(0.0) is None
        assert prefetcher.get(0.01) is None


def test_what_was_drawn_before_an_error_is_delivered_and_then_the_error() -> None:
    items = iter([1, 2])

    def source() -> int:
        try:
            return next(items)
        except StopIteration:
            raise ConnectionError("replay is gone") from None

    with Prefetcher(source, depth=5) as prefetcher:
        for thread in prefetch_threads():
            thread.join(LIMIT)
        assert [prefetcher.get(LIMIT), prefetcher.get(LIMIT)] == [1, 2]
        for _ in range(2):  # and it stays an error
            with pytest.raises(ConnectionError, match="replay is gone"):
                prefetcher.get(0.0)


def test_sources_are_drawn_from_at_the_same_time() -> None:
    together = threading.Barrier(2, timeout=LIMIT)

    def source() -> int:
        return together.wait()

    with Prefetcher(source, source, depth=2) as prefetcher:
        assert sorted([prefetcher.get(LIMIT), prefetcher.get(LIMIT)]) == [0, 1]
        together.abort()


def test_an_error_of_one_source_is_not_hidden_by_the_others() -> None:
    def broken() -> int:
        raise ConnectionError("replay is gone")

    with Prefetcher(broken, lambda: 1, depth=2) as prefetcher:
        for thread in prefetch_threads():
            thread.join(LIMIT)
        with pytest.raises(ConnectionError, match="replay is gone"):
            for _ in range(4):  # after at most what the other one had drawn
                prefetcher.get(0.0)


def test_an_error_surfaces_without_any_batch() -> None:
    def source() -> int:
        raise ValueError("a column is missing")

    with Prefetcher(source) as prefetcher:
        for thread in prefetch_threads():
            thread.join(LIMIT)
        with pytest.raises(ValueError, match="a column is missing"):
            prefetcher.get(LIMIT)


@pytest.mark.parametrize("items", [[], list(range(100))], ids=["nothing to draw", "a full buffer"])
def test_a_stop_ends_the_thread(items: list[int]) -> None:
    with Prefetcher(finite(items), depth=1):
        assert prefetch_threads()
    assert not prefetch_threads()


def test_an_error_of_the_taker_ends_the_thread_too() -> None:
    with pytest.raises(KeyError), Prefetcher(finite(list(range(100))), depth=1):
        raise KeyError("update failed")
    assert not prefetch_threads()


def test_a_buffer_without_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="depth=0"):
        Prefetcher(finite([]), depth=0)
