"""Samples that others take from `replay`: those the table counts and our sampler cannot have taken.

The rate limiter counts every sample, whoever takes it: a stranger's are missing to the learner.
"""

import logging


class ForeignSamples:
    """Compares the table's count with the most that our own sampler can have taken."""

    def __init__(self, slack: int):
        """`slack` is what may be counted before our sampler has handed it over."""
        self._slack = slack
        self._first: tuple[int, int] | None = None  # both counts, when the comparison began
        self._samples = 0
        self.count = 0

    def observe(self, samples: int, own_at_most: int) -> int:
        """Takes both counts as they are now; returns how many samples were certainly foreign."""
        if self._first is None or samples < self._samples:
            # A smaller count is a restarted server's.
            self._first = samples, own_at_most - self._slack
        self._samples = samples
        first_samples, first_own = self._first
        foreign = samples - first_samples - (own_at_most - first_own)
        if foreign > 0 and self.count == 0:
            logging.error("someone else samples from replay, and takes from the learner's share")
        self.count = max(self.count, foreign)
        return self.count
