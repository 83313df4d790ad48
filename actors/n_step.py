"""One game's stream of rows, and the items cut from it.

A stream is a growing list of rows, each a single frame with what happened from it. An item is one
slice of it that holds several consecutive transitions: first the rows that only show in stacks,
then those of its sources, then the rest of their n-step windows. So a frame is stored once, and
neighbors share what they show.

Episodes follow each other without a break. A termination needs nothing after it: the discount of
its last row is 0, so what follows counts for nothing. After a truncation comes one more row, the
`final` frame, on which nobody acted: windows end there and bootstrap from it. A row's `age` says
how many of the rows before it are of its own episode; a stack shows black in place of the others.

Every step is the source of exactly one transition of one item, whatever happens around it. With a
final row among its sources an item's last windows are a row shorter, instead of all items a row
longer. `learner.cutting` takes items apart by the same rules.
"""

from collections import deque
from typing import NamedTuple

import numpy as np

from actors.observation import FRAME_SHAPE, STACK_SIZE

_BEFORE = STACK_SIZE - 1  # rows of an item before its first source


class Row(NamedTuple):
    """One step of a stream: a frame, and the action taken on it with its consequences."""

    frame: np.ndarray  # uint8 [84, 84]
    action: int
    reward: float  # clipped
    discount: float  # gamma, or 0 if the life or the game ended with this step
    epsilon: float
    greedy: int
    age: int = 0  # rows before it in its episode, 3 at most; the stream fills it in
    final: int = 0  # 1: the frame a truncated episode ended with, and nothing was done on it


class Increment(NamedTuple):
    """What one step adds: rows to append, and the items that are whole once they are.

    An item is a slice that counts back from the newest row.
    """

    rows: list[Row]
    items: list[slice]


def item_rows(n_step: int, transitions: int) -> int:
    """The rows of an item. A window of one step gets a row to spare, for a final row."""
    return _BEFORE + transitions + max(n_step, 2)


def shortest_truncated_steps(n_step: int, transitions: int) -> int:
    """Episodes cut off sooner could put more final rows among an item's sources than it has room
    for."""
    return -(-(transitions - 1) // (max(n_step, 2) - 1))


class NStepStream:
    """Turns the steps of one game into rows and items."""

    def __init__(self, n_step: int, transitions: int):
        if n_step < 1:
            raise ValueError(f"n={n_step}: a window needs at least one step")
        if transitions < 1:
            raise ValueError(f"transitions={transitions}: an item holds at least one")
        self._item_rows = item_rows(n_step, transitions)
        self._transitions = transitions
        self.episode_steps = 0  # of the episode so far
        self._num_rows = 0
        self._num_sources = 0
        self._starts: deque[int] = deque()  # first rows of items that are not whole yet

    def step(self, row: Row) -> Increment:
        """Adds a played step."""
        before = [] if self._num_rows else [_BLACK] * _BEFORE
        self._num_rows += len(before)
        if self._num_sources % self._transitions == 0:
            self._starts.append(self._num_rows - _BEFORE)
        self._num_sources += 1
        aged = row._replace(age=min(self.episode_steps, _BEFORE))
        self.episode_steps += 1
        return self._append([*before, aged])

    def end(self, final_frame: np.ndarray, *, terminated: bool) -> Increment:
        """Ends the episode at its final frame."""
        if not self.episode_steps:
            raise ValueError("an episode cannot end before its first step")
        age = min(self.episode_steps, _BEFORE)
        self.episode_steps = 0
        if terminated:
            return Increment([], [])
        return self._append([_unplayed(final_frame, age=age, final=1)])

    def state(self) -> np.ndarray:
        """All that decides what it makes of the next step, int64 [4 + rows of an item]."""
        counts = [self.episode_steps, self._num_rows, self._num_sources, len(self._starts)]
        unused = [0] * (self._item_rows - len(self._starts))
        return np.array([*counts, *self._starts, *unused], np.int64)

    def restore(self, state: np.ndarray) -> None:
        """Goes on from a `state`."""
        self.episode_steps, self._num_rows, self._num_sources, waiting, *starts = state.tolist()
        self._starts = deque(starts[:waiting])

    def _append(self, rows: list[Row]) -> Increment:
        """The last of the rows is new; it completes one item at most."""
        self._num_rows += 1
        if not self._starts or self._starts[0] + self._item_rows > self._num_rows:
            return Increment(rows, [])
        first = self._starts.popleft() - self._num_rows
        # A stop of 0 would mean "before the oldest"; None means "through the newest".
        return Increment(rows, [slice(first, first + self._item_rows or None)])


def _unplayed(frame: np.ndarray, *, age: int, final: int) -> Row:
    return Row(
        frame, action=0, reward=0.0, discount=1.0, epsilon=1.0, greedy=0, age=age, final=final
    )


_ZERO_FRAME = np.zeros(FRAME_SHAPE, np.uint8)
_ZERO_FRAME.flags.writeable = False
# Before the first step of a stream; no stack shows them.
_BLACK = _unplayed(_ZERO_FRAME, age=0, final=0)
