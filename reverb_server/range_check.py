"""Range checks on sampled items: what a stranger inserts may fit the signature and still be junk.

Reverb's port asks nobody who they are, so an item is believed only as far as it could have come
from an actor: whole action numbers, clipped rewards, discounts and exploration rates in [0, 1].
Frames need no check: every byte is a shade of grey.
"""

import numpy as np

MAX_ACTIONS = 18  # of the joystick


def plausible(steps: np.ndarray, num_actions: int) -> np.ndarray:
    """Whether each item of `steps` [B, n, fields] could have come from an actor; bool [B]."""
    action, reward, discount, epsilon, greedy = np.moveaxis(steps, -1, 0)
    # A NaN fails every comparison.
    good = (np.abs(reward) <= 1.0) & _within(discount, 1.0) & _within(epsilon, 1.0)
    for number in (action, greedy):
        good &= _within(number, num_actions - 1) & (number == np.floor(number))
    return good.all(axis=1)


def stand_ins(good: np.ndarray) -> np.ndarray:
    """Numbers of items for a batch of the same size without the bad ones, int [B].

    Good items keep their place; a bad one's is taken by the good ones in turn. At least one must be
    good.
    """
    numbers = np.arange(len(good))
    numbers[~good] = np.resize(numbers[good], (~good).sum())
    return numbers


def _within(values: np.ndarray, high: float) -> np.ndarray:
    return (values >= 0.0) & (values <= high)
