"""n-step windows over one game's stream of rows.

A stream is a growing list of rows, each a single frame with what happened from it. An n-step item
is slices of it: with source row s and bootstrap row b, its stacks are the frames up to and
including each of them, its reward and discount columns are rows s .. s+n-1. So a frame is stored
once, however many items show it.

Rows that nobody played make every window whole:
- before an episode, rows of zero frames (what the environment's stack shows there);
- after it, the final frame, then filler rows with reward 0 and discount 1 (after a truncation:
  bootstrap as if the window ended there) or 0 (after a termination).

Rows are counted here and nowhere else: slices count back from the newest row, so whoever stores the
rows needs neither a count nor to know where episodes end.
"""

from typing import NamedTuple

import numpy as np

from actors.observation import FRAME_SHAPE, STACK_SIZE


class Row(NamedTuple):
    """One step of a stream: a frame, and the action taken on it with its consequences."""

    frame: np.ndarray  # uint8 [84, 84]
    action: int
    reward: float  # clipped
    discount: float  # gamma, or 0 if the life or the game ended with this step
    epsilon: float
    greedy: int


class Item(NamedTuple):
    """An n-step transition, as slices of the stream up to its newest row."""

    o_tm1: slice  # whose frames are the stack at the source
    o_t: slice  # whose frames are the stack to bootstrap from
    steps: slice  # the window


class Increment(NamedTuple):
    """What one step adds: rows to append, and the items that are whole once they are."""

    rows: list[Row]
    items: list[Item]


class NStepStream:
    """Turns the steps of one game into rows and items."""

    def __init__(self, n: int):
        if n < 1:
            raise ValueError(f"n={n}: a window needs at least one step")
        self._n = n
        self.episode_steps = 0  # of the episode so far

    def step(self, row: Row) -> Increment:
        """Adds a played step. The item it completes started n steps ago."""
        rows = [row] if self.episode_steps else [*_PADDING, row]
        self.episode_steps += 1
        whole = self.episode_steps > self._n
        return Increment(rows, [self._item(-1 - self._n, -1)] if whole else [])

    def end(self, final_frame: np.ndarray, *, terminated: bool) -> Increment:
        """Ends the episode at its final frame; the short windows that are left come out."""
        if not self.episode_steps:
            raise ValueError("an episode cannot end before its first step")
        filler = _unplayed(final_frame, discount=0.0 if terminated else 1.0)
        # The last window starts one row before the final frame and is n rows long.
        rows = [filler] * max(self._n - 1, 1)
        final = -len(rows)
        left = min(self.episode_steps, self._n)
        self.episode_steps = 0
        return Increment(rows, [self._item(final - back, final) for back in range(left, 0, -1)])

    def _item(self, source: int, bootstrap: int) -> Item:
        """The item of two rows; as indices in Python, -1 is the newest."""
        return Item(
            o_tm1=_up_to(source, STACK_SIZE),
            o_t=_up_to(bootstrap, STACK_SIZE),
            steps=_up_to(source + self._n - 1, self._n),
        )


def rows_reached(n: int) -> int:
    """Items refer to at most this many of the newest rows."""
    return 2 * n + STACK_SIZE


def _up_to(last: int, length: int) -> slice:
    # A stop of 0 would mean "before the oldest"; None means "through the newest".
    return slice(last + 1 - length, last + 1 or None)


def _unplayed(frame: np.ndarray, *, discount: float) -> Row:
    return Row(frame=frame, action=0, reward=0.0, discount=discount, epsilon=1.0, greedy=0)


_ZERO_FRAME = np.zeros(FRAME_SHAPE, np.uint8)
_ZERO_FRAME.flags.writeable = False
_PADDING = [_unplayed(_ZERO_FRAME, discount=1.0)] * (STACK_SIZE - 1)
