"""Replay for serial runs: in this process, and with a seed.

Reverb's selectors cannot be seeded, so a run that must be reproducible keeps its items here. Rows,
items and batches mean what they mean in Reverb; frames are held once, by reference. Its state is
plain arrays: every row once, items and streams as row numbers, frames compressed.
"""

import zlib
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from actors.n_step import Increment, Item, Row, rows_reached
from actors.observation import FRAME_SHAPE, STACK_SIZE
from actors.resume import pack_rng, unpack_rng
from learner.transitions import Transition


class _Stored(NamedTuple):
    """An item as references to rows: both stacks, and the window."""

    o_tm1: list[Row]
    o_t: list[Row]
    steps: list[Row]


# Frames are mostly flat gray: the fastest level is nearly as small as the others.
_COMPRESSION = 1
_, *_COLUMNS = Row._fields  # all but the frame


class SerialReplay:
    """The newest `capacity_steps` transitions, sampled uniformly."""

    def __init__(self, *, n_step: int, capacity_steps: int, rng: np.random.Generator):
        self._n_step = n_step
        self._capacity_steps = capacity_steps
        self._rng = rng
        self._items: list[_Stored] = []
        self._streams: dict[tuple[int, int], list[Row]] = {}
        self.inserts = 0
        self.samples = 0

    @property
    def size(self) -> int:
        """Items held."""
        return len(self._items)

    def write(self, stream: tuple[int, int], increment: Increment) -> None:
        """Appends rows to a stream, (actor, game), and stores the items they complete."""
        rows = self._streams.setdefault(stream, [])
        # A copy: the row's frame is a view of a whole batch of stacks.
        rows.extend(row._replace(frame=row.frame.copy()) for row in increment.rows)
        for item in increment.items:
            self._insert(rows, item)
        del rows[: -rows_reached(self._n_step)]

    def sample(self, batch_size: int) -> Transition:
        """A batch, as numpy columns."""
        self.samples += batch_size
        chosen = self._rng.integers(len(self._items), size=batch_size)
        columns = zip(*(_transition(self._items[i]) for i in chosen), strict=True)
        return Transition(*(np.stack(column) for column in columns))

    def state(self) -> dict[str, np.ndarray]:
        """Everything in it, as arrays."""
        numbers = _RowNumbers()
        items = [[numbers.of(rows) for rows in item] for item in self._items]
        streams = [numbers.of(rows) for rows in self._streams.values()]
        return {
            "rng": pack_rng(self._rng),
            "counts": np.array([self.inserts, self.samples]),
            # One line per item: both stacks and the window, end to end.
            "items": np.array([[*chain.from_iterable(item)] for item in items], np.int32),
            "stream_keys": np.array(list(self._streams), np.int32).reshape(-1, 2),
            "stream_lengths": np.array([len(rows) for rows in streams], np.int64),
            "stream_rows": np.array([*chain.from_iterable(streams)], np.int32),
            **_pack_rows(numbers.rows),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Takes over a `state`."""
        unpack_rng(self._rng, state["rng"])
        self.inserts, self.samples = state["counts"].tolist()
        rows = _unpack_rows(state)
        self._items = []
        for numbers in state["items"].tolist():
            line = [rows[number] for number in numbers]
            stacks, window = line[: 2 * STACK_SIZE], line[2 * STACK_SIZE :]
            self._items.append(_Stored(stacks[:STACK_SIZE], stacks[STACK_SIZE:], window))
        ends = np.cumsum(state["stream_lengths"])[:-1]
        parts = np.split(state["stream_rows"], ends) if len(state["stream_keys"]) else []
        self._streams = {
            (actor, game): [rows[number] for number in part.tolist()]
            for (actor, game), part in zip(state["stream_keys"].tolist(), parts, strict=True)
        }

    def _insert(self, rows: list[Row], item: Item) -> None:
        stored = _Stored(rows[item.o_tm1], rows[item.o_t], rows[item.steps])
        if len(self._items) < self._capacity_steps:
            self._items.append(stored)
        else:
            self._items[self.inserts % self._capacity_steps] = stored
        self.inserts += 1


class _RowNumbers:
    """Numbers rows in the order they are first asked for."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._numbers: dict[int, int] = {}  # by identity: items share rows

    def of(self, rows: Iterable[Row]) -> list[int]:
        return [self._number(row) for row in rows]

    def _number(self, row: Row) -> int:
        number = self._numbers.setdefault(id(row), len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number


def _pack_rows(rows: list[Row]) -> dict[str, np.ndarray]:
    packer = zlib.compressobj(_COMPRESSION)
    frames = b"".join([packer.compress(row.frame.tobytes()) for row in rows] + [packer.flush()])
    columns = {name: np.array([getattr(row, name) for row in rows]) for name in _COLUMNS}
    return {"frames": np.frombuffer(frames, np.uint8), **columns}


def _unpack_rows(state: Mapping[str, np.ndarray]) -> list[Row]:
    data = zlib.decompress(state["frames"].tobytes())
    frames = np.frombuffer(data, np.uint8).reshape(-1, *FRAME_SHAPE)
    columns = (state[name].tolist() for name in _COLUMNS)
    return list(map(Row, frames, *columns))


def _transition(stored: _Stored) -> Transition:
    source = stored.steps[0]
    return Transition(
        o_tm1=np.stack([row.frame for row in stored.o_tm1]),
        o_t=np.stack([row.frame for row in stored.o_t]),
        a_tm1=np.int32(source.action),
        r_t=np.array([row.reward for row in stored.steps], np.float32),
        discount_t=np.array([row.discount for row in stored.steps], np.float32),
        epsilon=np.float32(source.epsilon),
        greedy_tm1=np.int32(source.greedy),
    )
