"""Episodes of known content in the replay of a live run, and a check that none of them is torn.

Every frame names its episode and step and ends with a check sum, every reward and action follows
from the two. So of any item that was ever part of such an episode all eight frames and all rows are
known, whatever happened to actors, server or network while it was written.
"""

import struct
import threading
import time
import zlib
from collections.abc import Sequence

import numpy as np
import reverb

from actors.n_step import NStepStream, Row
from actors.observation import FRAME_SHAPE, OBSERVATION_SHAPE
from reverb_server import tables
from reverb_server.client import OthersAwayError
from reverb_server.writer import ExperienceWriter

EPISODE_STEPS = 40
GAMMA = 0.99
NUM_ACTIONS = 6  # of Pong
_MAGIC = b"SYNTHEPI"
_BYTES = FRAME_SHAPE[0] * FRAME_SHAPE[1]
# After the end of an episode, which is a termination.
_FILLER = tables.Step(action=0, reward=0.0, discount=0.0, epsilon=1.0, greedy=0)
_HEADER = struct.Struct("<8sII")


def make_frame(episode: int, step: int) -> np.ndarray:
    """The frame of a step: its name, noise that follows from it, a check sum of both."""
    head = _HEADER.pack(_MAGIC, episode, step)
    noise = np.random.default_rng((episode, step)).integers(256, size=_BYTES - len(head) - 4)
    body = head + noise.astype(np.uint8).tobytes()
    return np.frombuffer(body + struct.pack("<I", zlib.crc32(body)), np.uint8).reshape(FRAME_SHAPE)


def read_frame(frame: np.ndarray) -> tuple[int, int] | None:
    """Episode and step of a frame, or None if it is not one of ours. A wrong sum is an error."""
    data = frame.tobytes()
    magic, episode, step = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        return None
    assert zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0], (episode, step)
    return episode, step


def make_row(episode: int, step: int) -> Row:
    """What was done on a frame, and what came of it."""
    return Row(
        frame=make_frame(episode, step),
        action=(episode + step) % NUM_ACTIONS,
        reward=float((7 * episode + step) % 3 - 1),
        discount=GAMMA,
        epsilon=0.5,
        greedy=step % NUM_ACTIONS,
    )


def is_synthetic(o_tm1: np.ndarray) -> bool:
    """Whether an item is of one of our episodes."""
    return any(read_frame(frame) is not None for frame in o_tm1)


def check_item(o_tm1: np.ndarray, o_t: np.ndarray, steps: np.ndarray) -> None:
    """Raises AssertionError unless the item is exactly what was inserted."""
    source = read_frame(o_tm1[-1])
    assert source is not None, "the source frame is not of the episode"
    episode, first = source
    n_step = len(steps)
    bootstrap = min(first + n_step, EPISODE_STEPS)
    for stack, last in ((o_tm1, first), (o_t, bootstrap)):
        for frame, step in zip(stack, range(last - 3, last + 1), strict=True):
            if step < 0:
                assert not frame.any(), "padding before an episode is black"
            else:
                assert read_frame(frame) == (episode, step), (read_frame(frame), episode, step)
    for row, step in zip(steps, range(first, first + n_step), strict=True):
        if step < EPISODE_STEPS:
            expected = tables.pack_step(make_row(episode, step))
        else:
            expected = np.array(_FILLER, np.float32)
        np.testing.assert_array_equal(row, expected)


class SyntheticActor:
    """Inserts episodes from a thread of its own until closed; reconnects as often as it must."""

    def __init__(self, address: str, *, n_step: int, period_seconds: float = 0.2):
        self._address, self._n_step, self._period_seconds = address, n_step, period_seconds
        self._stop = threading.Event()
        self.episodes = 0
        self._thread = threading.Thread(target=self._run, name="synthetic", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join(10.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with ExperienceWriter(
                    reverb.Client(self._address),
                    tables.ItemLayout(self._n_step, OBSERVATION_SHAPE),
                    num_streams=1,
                    should_stop=self._stop.is_set,
                    timeout_seconds=60.0,
                ) as writer:
                    while not self._stop.wait(self._period_seconds):
                        self._play(writer)
            except (RuntimeError, reverb.ReverbError, OthersAwayError):
                time.sleep(0.5)  # the server is away

    def _play(self, writer: ExperienceWriter) -> None:
        stream = NStepStream(self._n_step)
        for step in range(EPISODE_STEPS):
            writer.write(0, *stream.step(make_row(self.episodes, step)))
        final = make_frame(self.episodes, EPISODE_STEPS)
        writer.write(0, *stream.end(final, terminated=True))
        self.episodes += 1


def _has_our_shape(columns: Sequence[np.ndarray]) -> bool:
    shapes = [column.shape for column in columns]
    return len(shapes) == 3 and shapes[:2] == [OBSERVATION_SHAPE] * 2 and shapes[2][1:] == (5,)


def check_replay(address: str, num_samples: int, timeout_seconds: float = 30.0) -> int:
    """Samples items and checks those of ours; returns how many there were."""
    found = [0]
    errors: list[BaseException] = []

    def sample() -> None:
        try:
            client = reverb.Client(address)
            for item in client.sample(tables.REPLAY, num_samples, emit_timesteps=False):
                if not _has_our_shape(item.data):
                    continue  # a stranger's, which the learner has not met yet
                o_t, o_tm1, steps = item.data  # by name
                if is_synthetic(o_tm1):
                    check_item(o_tm1, o_t, steps)
                    found[0] += 1
        except BaseException as error:
            errors.append(error)

    # In a thread: the limiter may hold us back, and a call has no limit of its own.
    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    if errors:
        raise errors[0]
    return found[0]
