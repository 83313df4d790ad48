"""Which cores the runs of a suite have while several go on at a time.

Two runs that share all cores get in each other's way: each computes with as many threads as there
are cores. So each has a part of them to itself, and computes with as many threads as that has.
"""

import itertools
from collections.abc import Collection

Share = frozenset[int]


class CoreShares:
    """A share for each run at a time; where there are fewer cores than runs, all cores for each."""

    def __init__(self, cores: Collection[int], *, runs: int):
        ordered = sorted(cores)
        if len(ordered) < runs:
            self._free = [frozenset(ordered)] * runs
        else:
            # Neighbors often share a cache, so a share is of neighbors.
            ends = [len(ordered) * part // runs for part in range(runs + 1)]
            self._free = [frozenset(ordered[start:end]) for start, end in itertools.pairwise(ends)]

    def take(self) -> Share:
        """For a run that starts."""
        return self._free.pop(0)

    def give_back(self, share: Share) -> None:
        """The run has ended."""
        self._free.append(share)
