"""Parameters leave the device on the publisher's thread, however long the device takes."""

import threading
from typing import Any

import numpy as np
import pytest
import reverb

from launch.nodes.publishing import make_publish
from launch.nodes.replay import replay_tables
from launch.replay import replay_limit
from learner.divergence import FiniteGuard
from learner.loop import Progress
from learner.update import LearnerState
from reverb_server import tables
from reverb_server.params import ParamsPublisher
from tests.launch.tiny_run import tiny_config

LIMIT = 60.0  # bounds a hang


@pytest.fixture
def client():
    config = tiny_config()
    server = reverb.Server(replay_tables(config, replay_limit(config)))
    yield reverb.Client(f"localhost:{server.port}")
    server.stop()


class OnDevice:
    """A vector that the device is still computing; reading it waits until it is done."""

    def __init__(self, values: np.ndarray):
        self.values = values
        self.wanted, self.done = threading.Event(), threading.Event()
        self.read_by: list[str] = []

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        self.read_by.append(threading.current_thread().name)
        self.wanted.set()
        assert self.done.wait(LIMIT)
        return self.values


def test_publishing_returns_while_the_device_computes(client: reverb.Client) -> None:
    first, second = (OnDevice(np.full(3, value, np.float32)) for value in (1, 2))
    publisher = ParamsPublisher(client)
    publish = make_publish(lambda params: params["vector"], publisher, FiniteGuard())

    for updates, vector in ((100, first), (200, second)):
        state = LearnerState({"vector": vector}, {}, (), None)  # type: ignore[arg-type]
        publish(state, Progress(updates, steps=4 * updates, finished=False))
        # Here the learner goes on, though the publisher waits for a copy that is not computed.
        assert first.wanted.wait(LIMIT)
    assert not first.done.is_set()
    first.done.set(), second.done.set()
    publisher.close(timeout_seconds=LIMIT)

    assert first.read_by == second.read_by == ["publish"]
    header, values = next(iter(client.sample(tables.PARAMS, emit_timesteps=False))).data
    assert header[:2].tolist() == [200, 800]
    np.testing.assert_array_equal(values, second.values)
