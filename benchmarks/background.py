"""Work in processes of their own while a block runs."""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event

CONTEXT = multiprocessing.get_context("spawn")
_STOP_SECONDS = 200.0  # then they are killed


@contextlib.contextmanager
def in_background(*jobs: Callable[[Event], None]) -> Iterator[Event]:
    """Runs each job in a process; they end when the event they get, and this yields, is set."""
    stop = CONTEXT.Event()
    processes = [CONTEXT.Process(target=job, args=(stop,)) for job in jobs]
    for process in processes:
        process.start()
    try:
        yield stop
    finally:
        stop.set()
        for process in processes:
            process.join(_STOP_SECONDS)
            if process.is_alive():
                process.kill()
