"""Takes sampled items apart: slices of a game's rows become the transitions of several updates.

An item holds U consecutive transitions. Of the items sampled for U updates each gives one to every
update, in an order drawn for each item: so a batch has one transition of each of B independent
items, and every transition is equally likely to be in it.

The rules are those by which rows were written (`actors.n_step`): sources are the first U rows from
row `stack - 1` on that are not `final`; a window ends at the first final row after its source, or
at the item's last row; of the rows before a row only `age` are of its episode.

Which rows go where is computed here, in numpy on a few small arrays. Moving the frames is the
backend's (`learner.backend`): an accelerator gets each frame once and cuts for itself.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from learner.transitions import Column, Transition

# Frames [rows, height, width], row numbers of two batches of stacks [T, stack], -1 for black;
# gives both on the device.
TakeStacks = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Column, Column]]


class Steps(Protocol):
    """What rows hold beside their frame, as columns [items, rows]."""

    @property
    def action(self) -> np.ndarray: ...
    @property
    def reward(self) -> np.ndarray: ...
    @property
    def discount(self) -> np.ndarray: ...
    @property
    def epsilon(self) -> np.ndarray: ...
    @property
    def greedy(self) -> np.ndarray: ...
    @property
    def age(self) -> np.ndarray: ...
    @property
    def final(self) -> np.ndarray: ...


class Sources(NamedTuple):
    """One transition per line: its item, the row it starts from, the row to bootstrap from."""

    item: np.ndarray  # int [T]
    row: np.ndarray  # int [T]
    bootstrap: np.ndarray  # int [T]


@dataclasses.dataclass(frozen=True)
class Cut:
    """The sizes of items, and of the batches made of them."""

    n_step: int
    item_transitions: int  # U
    batch_size: int
    stack_size: int

    def __call__(
        self,
        frames: np.ndarray,
        steps: Steps,
        rng: np.random.Generator,
        take_stacks: TakeStacks,
    ) -> Transition:
        """Transitions of the items [I, F, ...], those of the first update first."""
        sources = self.find_sources(steps.final, rng)
        item, row, bootstrap = sources
        window = row[:, None] + np.arange(self.n_step)
        played = window < bootstrap[:, None]
        window = np.minimum(window, steps.final.shape[1] - 1)
        line = item[:, None]
        o_tm1, o_t = take_stacks(
            frames.reshape(-1, *frames.shape[2:]),
            self._stack_rows(steps.age, item, row),
            self._stack_rows(steps.age, item, bootstrap),
        )
        return Transition(
            o_tm1=o_tm1,
            o_t=o_t,
            a_tm1=steps.action[item, row].astype(np.int32),
            r_t=np.where(played, steps.reward[line, window], np.float32(0)),
            discount_t=np.where(played, steps.discount[line, window], np.float32(1)),
            epsilon=steps.epsilon[item, row],
            greedy_tm1=steps.greedy[item, row].astype(np.int32),
        )

    def find_sources(self, final: np.ndarray, rng: np.random.Generator) -> Sources:
        """Which rows of the items are sources, and for which update."""
        num_items, num_rows = final.shape
        is_final = final > 0
        # Played rows first, in their order; a final row comes after all of them.
        rows = np.argsort(is_final[:, self.stack_size - 1 :], axis=1, kind="stable")
        rows = rows[:, : self.item_transitions] + (self.stack_size - 1)
        rows = rng.permuted(rows, axis=1)
        # Each batch takes one transition from each of its items.
        by_update = rows.reshape(-1, self.batch_size, self.item_transitions).transpose(0, 2, 1)
        item = np.arange(num_items).reshape(-1, 1, self.batch_size)
        item, row = np.broadcast_to(item, by_update.shape).ravel(), by_update.ravel()
        ends = np.where(is_final, np.arange(num_rows), num_rows - 1)
        next_end = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        return Sources(item, row, np.minimum(row + self.n_step, next_end[item, row]))

    def _stack_rows(self, age: np.ndarray, item: np.ndarray, row: np.ndarray) -> np.ndarray:
        """Row numbers over all items of the stacks that end with these rows, int32 [T, stack]."""
        back = np.arange(self.stack_size - 1, -1, -1)
        rows = (item * age.shape[1] + row)[:, None] - back
        return np.where(back <= age[item, row][:, None], rows, -1).astype(np.int32)


def take_on_device(
    frames: np.ndarray, rows_tm1: np.ndarray, rows_t: np.ndarray
) -> tuple[Column, Column]:
    """Sends every frame once; the device puts the stacks together."""
    return _gather(*jax.device_put((frames, rows_tm1, rows_t)))


@jax.jit
def _gather(
    frames: jax.Array, rows_tm1: jax.Array, rows_t: jax.Array
) -> tuple[jax.Array, jax.Array]:
    def stacks(rows: jax.Array) -> jax.Array:
        return jnp.where(rows[..., None, None] >= 0, frames[jnp.maximum(rows, 0)], jnp.uint8(0))

    return stacks(rows_tm1), stacks(rows_t)
