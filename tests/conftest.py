"""Settings every test runs under."""

import atexit
import gc
import os
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
