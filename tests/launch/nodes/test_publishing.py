"""Parameters leave the device on the publisher's thread, however long the device takes."""

import threading
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import reverb

from launch.nodes.publishing import make_publish
from launch.nodes.replay import replay_tables
from launch.replay import replay_limit
from launch.stored.candidate import CandidateWriter, load_candidate
from learner.divergence import FiniteGuard
from learner.loop import Progress
from learner.update import LearnerState
from reverb_server import tables
from reverb_server.params import ParamsPublisher
from tests.launch.tiny_run import tiny_config

LIMIT = 60.0  # bounds a hang
CONFIG = tiny_config()


@pytest.fixture
def client():
    server = reverb.Server(replay_tables(CONFIG, replay_limit(CONFIG)))
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


def test_publishing_returns_while_the_device_computes(client: reverb.Client, tmp_path) -> None:
    first, second = (OnDevice(np.full(3, value, np.float32)) for value in (1, 2))
    publisher = ParamsPublisher(client)
    candidates = CandidateWriter(tmp_path, period_frames=1_000_000)
    candidates.write({}, 0)  # none is due for long
    publish = make_publish(
        CONFIG, lambda params: params["vector"], publisher, FiniteGuard(), candidates
    )

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


def test_what_is_scored_next_lies_whole_on_disk_when_it_is_published(client, tmp_path) -> None:
    like = {"torso": np.zeros(2, np.float32), "value": np.zeros(3, np.float32)}
    sent: list[int] = []  # frames of the candidate at the time that a version is sent

    class Publisher(ParamsPublisher):
        def publish(self, values_fn, **header) -> None:
            values_fn()
            candidate = load_candidate(tmp_path, like)
            assert candidate is not None
            sent.append(candidate.frames)

    publisher = Publisher(client)
    publish = make_publish(
        CONFIG,
        lambda params: params["torso"],
        publisher,
        FiniteGuard(),
        CandidateWriter(tmp_path, period_frames=4000),
    )
    for updates, steps, finished in (
        (1, 0, False),
        (2, 900, False),
        (3, 1100, False),
        (4, 1200, True),
    ):
        params = {name: jnp.full_like(leaf, updates) for name, leaf in like.items()}
        publish(LearnerState(params, {}, (), None), Progress(updates, steps, finished))  # type: ignore[arg-type]
    publisher.close(timeout_seconds=LIMIT)
    # Every 4000 frames, which are 1000 steps, and at the end.
    assert sent == [0, 0, 4400, 4800]
