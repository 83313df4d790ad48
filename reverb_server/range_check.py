"""Range checks on sampled items: what a stranger inserts may fit the signature and still be junk.

Reverb's port asks nobody who they are, so an item is believed only as far as it could have come
from an actor: whole action numbers, clipped rewards, discounts and exploration rates in [0, 1], as
many rows before it as a stack shows, and a flag that is 0 or 1. Its priority must be one that an
error of the learner can have given it. Frames need no check: every byte is a shade of gray.
"""

import numpy as np

from reverb_server.tables import Step


class Ranges:
    """What the numbers of a row may be, field by field of `Step`."""

    def __init__(self, num_actions: int, stack_size: int):
        """`num_actions` bounds what an actor of the run can have done."""
        least = Step(action=0, reward=-1, discount=0, epsilon=0, greedy=0, age=0, final=0)
        most = least._replace(
            **{"action": num_actions - 1, "greedy": num_actions - 1, "age": stack_size - 1},
            **{"reward": 1, "discount": 1, "epsilon": 1, "final": 1},
        )
        fractional = least._replace(reward=1, discount=1, epsilon=1)
        self._least, self._most = np.array(least, np.float32), np.array(most, np.float32)
        self._fractional = np.array(fractional, bool)

    def plausible(self, steps: np.ndarray) -> np.ndarray:
        """Whether each item, a line of [B, rows, fields], could be an actor's; bool [B]."""
        # A NaN fails every comparison.
        good = (steps >= self._least) & (steps <= self._most)
        good &= (np.floor(steps) == steps) | self._fractional
        return good.all(axis=(1, 2))


def plausible_priorities(priorities: np.ndarray) -> np.ndarray:
    """Whether each is 0 or more, and no more than an error in float32 can be; bool [B].

    The sum of a whole table of such priorities is finite.
    """
    return (priorities >= 0.0) & (priorities <= np.finfo(np.float32).max)


def usable_odds(probabilities: np.ndarray) -> np.ndarray:
    """Whether a weight can be made of each probability; bool [B].

    An item that was drawn had one above 0, unless the sum it is a share of is infinite or NaN.
    """
    return np.isfinite(probabilities) & (probabilities > 0.0)


def refill_indices(good: np.ndarray) -> np.ndarray:
    """Indices that make a batch of the same size from its good items alone, int [B].

    Good items keep their place; the places of bad ones go to the good ones in turn. At least one
    must be good.
    """
    indices = np.arange(len(good))
    indices[~good] = np.resize(indices[good], (~good).sum())
    return indices
