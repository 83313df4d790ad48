"""Episodes of known content in the replay of a live run, and a check that none of them is torn.

Every frame names its episode and step and ends with a check sum, every reward and action follows
from the two. So of any item that was ever part of such an episode all rows are known, whatever
happened to actors, server or network while it was written.
"""

import struct
import threading
import time
import zlib
from collections.abc import Sequence

import numpy as np
import reverb

from actors.n_step import NStepStream, Row, item_rows
from actors.observation import FRAME_SHAPE, STACK_SIZE
from reverb_server import tables
from reverb_server.client import OthersAwayError
from reverb_server.writer import ExperienceWriter

EPISODE_STEPS = 40
GAMMA = 0.99
NUM_ACTIONS = 6  # of Pong
_MAGIC = b"SYNTHEPI"
_BYTES = FRAME_SHAPE[0] * FRAME_SHAPE[1]
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
        discount=GAMMA if step < EPISODE_STEPS - 1 else 0.0,
        epsilon=0.5,
        greedy=step % NUM_ACTIONS,
        age=min(step, STACK_SIZE - 1),
    )


def is_synthetic(frames: np.ndarray) -> bool:
    """Whether an item is of our episodes."""
    return any(read_frame(frame) is not None for frame in frames)


def check_item(frames: np.ndarray, steps: np.ndarray) -> None:
    """Raises AssertionError unless the item is exactly what was inserted."""
    names = [read_frame(frame) for frame in frames]
    for i, (frame, row, name) in enumerate(zip(frames, steps, names, strict=True)):
        if name is None:
            # Before the first step of a stream, and nowhere else.
            assert i < STACK_SIZE - 1 and not frame.any(), "a frame is not of an episode"
            continue
        np.testing.assert_array_equal(row, tables.pack_step(make_row(*name)))
        if i and (before := names[i - 1]) is not None:
            episode, step = before
            following = (episode, step + 1) if step < EPISODE_STEPS - 1 else (episode + 1, 0)
            assert name == following, (before, name)


def synthetic_layout(n_step: int, transitions: int) -> tables.ItemLayout:
    """The layout of a run with these settings."""
    return tables.ItemLayout(item_rows(n_step, transitions), transitions, FRAME_SHAPE, STACK_SIZE)


class SyntheticActor:
    """Inserts episodes from a thread of its own until closed; reconnects as often as it must."""

    def __init__(
        self, address: str, *, n_step: int, transitions: int = 4, period_seconds: float = 0.2
    ):
        """Items are those of a run with these settings; 4 updates a call are the default."""
        self._address, self._period_seconds = address, period_seconds
        self._n_step, self._transitions = n_step, transitions
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
                    synthetic_layout(self._n_step, self._transitions),
                    num_streams=1,
                    should_stop=self._stop.is_set,
                    timeout_seconds=60.0,
                ) as writer:
                    stream = NStepStream(self._n_step, self._transitions)
                    while not self._stop.wait(self._period_seconds):
                        self._play(writer, stream)
            except (RuntimeError, reverb.ReverbError, OthersAwayError):
                time.sleep(0.5)  # the server is away

    def _play(self, writer: ExperienceWriter, stream: NStepStream) -> None:
        for step in range(EPISODE_STEPS):
            writer.write(0, *stream.step(make_row(self.episodes, step)))
        final = make_frame(self.episodes, EPISODE_STEPS)
        writer.write(0, *stream.end(final, terminated=True))
        self.episodes += 1


def _has_our_shape(columns: Sequence[np.ndarray]) -> bool:
    shapes = [column.shape for column in columns]
    numbers = len(tables.Step._fields)
    return len(shapes) == 2 and shapes[0][1:] == FRAME_SHAPE and shapes[1][1:] == (numbers,)


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
                frames, steps = item.data  # by name
                if is_synthetic(frames):
                    check_item(frames, steps)
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
