"""Replay for serial runs: in this process, and with a seed.

Reverb's selectors cannot be seeded, so a run that must be reproducible keeps its items here. Rows,
items and batches mean what they mean in Reverb; frames are held once, by reference. Its state is
plain arrays: every row once, items and streams as row numbers, frames compressed.
"""

import operator
import zlib
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from actors.n_step import Increment, Row, item_rows
from actors.observation import FRAME_SHAPE
from actors.resume import pack_rng, unpack_rng
from learner.cutting import Cut, TakeStacks
from learner.transitions import Transition

# Frames are mostly flat gray: the fastest level is nearly as small as the others.
_COMPRESSION = 1


class Counts(NamedTuple):
    """What a replay has counted since the run began."""

    inserts: int  # agent steps
    samples: int  # transitions


class _Steps(NamedTuple):
    """The columns of items, float32 [items, rows] each."""

    action: np.ndarray
    reward: np.ndarray
    discount: np.ndarray
    epsilon: np.ndarray
    greedy: np.ndarray
    age: np.ndarray
    final: np.ndarray


# They have the names that a row has for them.
_COLUMNS = _Steps._fields
_values_of = operator.attrgetter(*_COLUMNS)


class SerialReplay:
    """The newest items of about `capacity_steps` steps, sampled uniformly."""

    def __init__(
        self, *, cut: Cut, take_stacks: TakeStacks, capacity_steps: int, rng: np.random.Generator
    ):
        self._cut = cut
        self._take_stacks = take_stacks
        self._item_rows = item_rows(cut.n_step, cut.item_transitions)
        self._capacity_items = -(-capacity_steps // cut.item_transitions)
        self._rng = rng
        self._items: list[list[Row]] = []
        self._streams: dict[tuple[int, int], list[Row]] = {}
        self.inserts = 0  # agent steps
        self.samples = 0  # transitions

    @property
    def size(self) -> int:
        """Agent steps held."""
        return len(self._items) * self._cut.item_transitions

    def counts(self) -> Counts:
        """What it has counted so far."""
        return Counts(self.inserts, self.samples)

    def write(self, stream: tuple[int, int], increment: Increment) -> None:
        """Appends rows to a stream, (actor, game), and stores the items they complete."""
        rows = self._streams.setdefault(stream, [])
        # A copy: the row's frame is a view of a whole batch of stacks.
        rows.extend(row._replace(frame=row.frame.copy()) for row in increment.rows)
        for item in increment.items:
            self._insert(rows[item])
        del rows[: -self._item_rows]

    def sample(self, num_transitions: int) -> Transition:
        """Batches that together have this number of transitions."""
        self.samples += num_transitions
        num_items = num_transitions // self._cut.item_transitions
        chosen = self._rng.integers(len(self._items), size=num_items)
        items = [self._items[i] for i in chosen]
        frames = np.array([[row.frame for row in item] for item in items])
        steps = np.array([[_values_of(row) for row in item] for item in items], np.float32)
        columns = _Steps(*np.moveaxis(steps, -1, 0))
        return self._cut(frames, columns, self._rng, self._take_stacks)

    def state(self) -> dict[str, np.ndarray]:
        """Everything in it, as arrays."""
        numbers = _RowNumbers()
        items = [numbers.of(rows) for rows in self._items]
        streams = [numbers.of(rows) for rows in self._streams.values()]
        return {
            "rng": pack_rng(self._rng),
            "counts": np.array([self.inserts, self.samples]),
            "items": np.array(items, np.int32),
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
        self._items = [[rows[number] for number in line] for line in state["items"].tolist()]
        ends = np.cumsum(state["stream_lengths"])[:-1]
        parts = np.split(state["stream_rows"], ends) if len(state["stream_keys"]) else []
        self._streams = {
            (actor, game): [rows[number] for number in part.tolist()]
            for (actor, game), part in zip(state["stream_keys"].tolist(), parts, strict=True)
        }

    def _insert(self, item: list[Row]) -> None:
        if len(self._items) < self._capacity_items:
            self._items.append(item)
        else:
            oldest = self.inserts // self._cut.item_transitions % self._capacity_items
            self._items[oldest] = item
        self.inserts += self._cut.item_transitions


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
    columns = zip(*(state[name].tolist() for name in _COLUMNS), strict=True)
    return [
        Row(frame, **dict(zip(_COLUMNS, values, strict=True)))
        for frame, values in zip(frames, columns, strict=True)
    ]


def is_current(state: Mapping[str, np.ndarray]) -> bool:
    """Whether a `state` is of this version: earlier ones held each transition as an item."""
    return set(_COLUMNS) <= state.keys()
