"""Diverged learning: values that are not finite, found before they leave the learner.

A parameter that is NaN or infinite makes the loss or the gradient's norm so in the next update, and
these the loop reads anyway, now and then. That alone would be too late for what is published or
saved in between: each such copy is checked itself, by the thread that makes it.
"""

from typing import Any

import jax
import numpy as np


class DivergedError(Exception):
    """NaN or infinity among the values; no later update would bring them back."""

    def __init__(self, updates: int):
        super().__init__(f"values are NaN or infinite after update {updates:,}")
        self.updates = updates


class FiniteGuard:
    """Lets finite values pass, and knows the newest update that such values came from."""

    def __init__(self) -> None:
        self.last_finite: int | None = None  # None before the first check

    def check(self, updates: int, values: Any) -> None:
        """Raises DivergedError unless every number in a tree of arrays is finite."""
        if not all_finite(values):
            raise DivergedError(updates)
        self.last_finite = updates if self.last_finite is None else max(self.last_finite, updates)


def all_finite(values: Any) -> bool:
    """Whether no number in a tree of arrays is NaN or infinite."""
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(values))
