"""Replay for serial runs: in this process, and with a seed.

Reverb's selectors cannot be seeded, so a run that must be reproducible keeps its items here. Rows,
items and batches mean what they mean in Reverb; frames are held once, by reference.
"""

from typing import NamedTuple

import numpy as np

from actors.environment import STACK_SIZE
from actors.n_step import Increment, Item, Row
from learner.transitions import Transition


class _Stored(NamedTuple):
    """An item as references to rows: both stacks, and the window."""

    stack_tm1: list[Row]
    stack_t: list[Row]
    window: list[Row]


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

    def write(self, stream: tuple[int, int], increment: Increment, ends: bool) -> None:
        """Appends rows to a stream, (actor, game), and stores the items they complete."""
        rows = self._streams.setdefault(stream, [])
        # A copy: the row's frame is a view of a whole batch of stacks.
        rows.extend(row._replace(frame=row.frame.copy()) for row in increment.rows)
        for item in increment.items:
            self._insert(rows, item)
        if ends:
            self._streams[stream] = []

    def sample(self, batch_size: int) -> Transition:
        """A batch, as numpy columns."""
        self.samples += batch_size
        chosen = self._rng.integers(len(self._items), size=batch_size)
        columns = zip(*(_transition(self._items[i]) for i in chosen), strict=True)
        return Transition(*(np.stack(column) for column in columns))

    def _insert(self, rows: list[Row], item: Item) -> None:
        source, bootstrap = item
        stored = _Stored(
            stack_tm1=rows[source - STACK_SIZE + 1 : source + 1],
            stack_t=rows[bootstrap - STACK_SIZE + 1 : bootstrap + 1],
            window=rows[source : source + self._n_step],
        )
        if len(self._items) < self._capacity_steps:
            self._items.append(stored)
        else:
            self._items[self.inserts % self._capacity_steps] = stored
        self.inserts += 1


def _transition(stored: _Stored) -> Transition:
    source = stored.window[0]
    return Transition(
        o_tm1=np.stack([row.frame for row in stored.stack_tm1]),
        o_t=np.stack([row.frame for row in stored.stack_t]),
        a_tm1=np.int32(source.action),
        r_t=np.array([row.reward for row in stored.window], np.float32),
        discount_t=np.array([row.discount for row in stored.window], np.float32),
        epsilon=np.float32(source.epsilon),
        greedy_tm1=np.int32(source.greedy),
    )
