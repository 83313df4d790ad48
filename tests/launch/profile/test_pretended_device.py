"""A device that takes time and no core: calls return at once, results come in order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from launch.profile.pretended_device import PretendedDevice
from learner.update import LearnerState, UpdateResult


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def real_update(state, batch, weights):
    return state, UpdateResult(td=weights * 2.0, scalars={"loss": jnp.mean(weights)})


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def device(time: FakeTime) -> PretendedDevice:
    return PretendedDevice(
        jax.jit(real_update), call_seconds=1.0, clock=lambda: time.now, sleep=time.sleep
    )


STATE = LearnerState({}, {}, (), jnp.zeros((), jnp.int32))
WEIGHTS = np.ones(3, np.float32)


def test_a_call_returns_at_once_and_its_result_waits(device, time) -> None:
    state, result = device(STATE, None, WEIGHTS)
    assert (time.now, state) == (0.0, STATE)
    jax.block_until_ready(result)
    assert time.now == 1.0
    # As the loop and the priorities read it.
    assert jax.device_get(result.scalars)["loss"] == 1.0
    np.testing.assert_array_equal(np.asarray(result.td), np.ones(3, np.float32))
    assert time.now == 1.0


def test_calls_queue_on_the_one_device(device, time) -> None:
    results = [device(STATE, None, WEIGHTS)[1] for _ in range(3)]
    jax.block_until_ready(results[2])
    assert time.now == 3.0
    time.now = 10.0  # it was idle for a while
    jax.block_until_ready(device(STATE, None, WEIGHTS)[1])
    assert time.now == 11.0


def test_the_host_runs_ahead_by_a_bounded_number_of_calls(device, time) -> None:
    for _ in range(32):
        device(STATE, None, WEIGHTS)
    assert time.now == 0.0
    device(STATE, None, WEIGHTS)
    assert time.now == 1.0
