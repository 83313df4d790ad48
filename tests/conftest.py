"""Settings every test runs under."""

import atexit
import gc
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Callable
from typing import Any

# Before JAX starts: tests run beside each other on small machines, so one thread each is faster.
# What they compile computes little: optimizing it would cost more than it saves.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0"
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# What one test compiles, the others load: those of this process, of other workers, and of the
# runs they start. A folder for each session, so that nothing is found that it did not make.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    _COMPILED = tempfile.mkdtemp(prefix="vantage-tests-compiled-")
    atexit.register(shutil.rmtree, _COMPILED, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _COMPILED
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["NUMBA_CACHE_DIR"] = f"{_COMPILED}/numba"

import jax
import pytest

from launch import courier_stand_in

# Tests that import Launchpad may do so before any module of `launch`.
courier_stand_in.install_where_needed()

# An accidental [B] against [B, 1] must fail, not broadcast.
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_configure() -> None:
    """What tests import leaves little garbage, and looking for it is a third of collecting them."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From now on the collector works, but looks at nothing that has been imported."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spreads files of whole runs over the workers, and none over the end, where others idle.

    A worker begins with an equal part of the list, and takes tests from the end of another's when
    it has none left.
    """
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    runs: dict[pathlib.Path, list[pytest.Item]] = {}
    rest = []
    for item in items:
        is_run = item.get_closest_marker("whole_run") is not None
        (runs.setdefault(item.path, []) if is_run else rest).append(item)
    items.clear()
    for worker in range(workers):
        part = rest[len(rest) * worker // workers : len(rest) * (worker + 1) // workers]
        files = list(runs.values())[worker::workers]
        step = len(part) * 3 // 4 // (len(files) + 1)
        for number, file in enumerate(files):
            items += [*part[step * number : step * (number + 1)], *file]
        items += part[step * len(files) :]


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Asks again until the answer is true, for a generous time at most; returns the answer."""

    def wait(ask: Callable[[], Any], limit_seconds: float = 30.0) -> Any:
        deadline = time.monotonic() + limit_seconds
        while not (answer := ask()):
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.002)
        return answer

    return wait
