"""Range checks on sampled items: what a stranger inserts may fit the signature and still be junk.

Reverb's port asks nobody who they are, so an item is believed only as far as it could have come
from an actor: whole action numbers, clipped rewards, discounts and exploration rates in [0, 1], as
many rows before it as a stack shows, and a flag that is 0 or 1.
Frames need no check: every byte is a shade of gray.
"""

import numpy as np

from reverb_server.tables import Step


def plausible(steps: Step, num_actions: int, stack_size: int) -> np.ndarray:
    """Whether each item, a line of `steps`' columns [B, rows], could be an actor's; bool [B]."""
    # A NaN fails every comparison.
    good = (
        (np.abs(steps.reward) <= 1.0) & _within(steps.discount, 1.0) & _within(steps.epsilon, 1.0)
    )
    whole = {num_actions: (steps.action, steps.greedy), stack_size: (steps.age,), 2: (steps.final,)}
    for kinds, columns in whole.items():
        for number in columns:
            good &= _within(number, kinds - 1) & (number == np.floor(number))
    return good.all(axis=1)


def refill_indices(good: np.ndarray) -> np.ndarray:
    """Indices that make a batch of the same size from its good items alone, int [B].

    Good items keep their place; the places of bad ones go to the good ones in turn. At least one
    must be good.
    """
    indices = np.arange(len(good))
    indices[~good] = np.resize(indices[good], (~good).sum())
    return indices


def _within(values: np.ndarray, high: float) -> np.ndarray:
    return (values >= 0.0) & (values <= high)
