"""n-step windows over one game's stream of rows.

A stream is a list of rows, each a single frame with what happened from it. An n-step item names the
rows it is made of: its source row s and its bootstrap row b. Its stacks are the four frames up to
and including each of them, its reward and discount columns are rows s .. s+n-1. So a frame is
stored once, however many items show it.

Rows beside the played ones make every window whole:
- before an episode, three rows of zero frames (what the environment's stack shows there);
- after it, the final frame, then filler rows with reward 0 and discount 1 (after a truncation:
  bootstrap as if the window ended there) or 0 (after a termination).
"""

from typing import NamedTuple

import numpy as np

from actors.environment import FRAME_SHAPE, STACK_SIZE

_ZERO_FRAME = np.zeros(FRAME_SHAPE, np.uint8)
_ZERO_FRAME.flags.writeable = False


class Row(NamedTuple):
    """One step of a stream: a frame, and the action taken on it with its consequences."""

    frame: np.ndarray  # uint8 [84, 84]
    action: int
    reward: float  # clipped
    discount: float  # gamma, or 0 if the life or the game ended with this step
    epsilon: float
    greedy: int


class Item(NamedTuple):
    """An n-step transition, by row numbers counted from the start of the stream."""

    source: int
    bootstrap: int


class Increment(NamedTuple):
    """What one step adds: rows to append, and the items that are whole once they are."""

    rows: list[Row]
    items: list[Item]


class NStepStream:
    """Turns the steps of one game into rows and items. Row numbers restart each episode."""

    def __init__(self, n: int):
        if n < 1:
            raise ValueError(f"n={n}: a window needs at least one step")
        self._n = n
        self.num_rows = 0  # of the episode so far

    def step(self, row: Row) -> Increment:
        """Adds a played step. The item it completes started n steps ago."""
        rows = [row] if self.num_rows else [*_padding_before(), row]
        self.num_rows += len(rows)
        newest = self.num_rows - 1
        source = newest - self._n
        # Rows 0..2 are padding: the first source is the episode's first frame.
        return Increment(rows, [Item(source, newest)] if source >= STACK_SIZE - 1 else [])

    def end(self, final_frame: np.ndarray, *, terminated: bool) -> Increment:
        """Ends the episode at its final frame; the short windows that are left come out."""
        if not self.num_rows:
            raise ValueError("an episode cannot end before its first step")
        filler = Row(final_frame, 0, 0.0, 0.0 if terminated else 1.0, 1.0, 0)
        # The last window starts one row before the final frame and is n rows long.
        rows = [filler] * max(self._n - 1, 1)
        final = self.num_rows
        first_source = max(final - self._n, STACK_SIZE - 1)
        items = [Item(source, final) for source in range(first_source, final)]
        self.num_rows = 0
        return Increment(rows, items)


def _padding_before() -> list[Row]:
    return [Row(_ZERO_FRAME, 0, 0.0, 1.0, 1.0, 0)] * (STACK_SIZE - 1)
