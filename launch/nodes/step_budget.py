"""Steps that are left to a run: its actors insert them, and none beyond.

The learner ends a run by the inserts it sees, and actors hear of it a second or so later; a small
run would end far beyond what was asked. So every actor looks at replay's own count of inserts, the
more often the nearer the end is, and holds back what would go beyond it. With many actors what is
left is shared: each takes half of its share before it looks again.

The run's steps are the server's count, and those from before a server that lost what it held. How
many these are is learned from the parameters that the learner publishes. They come late, when more
has been inserted, so it is too low a number rather than too high a one; where a restart made it too
high after all, it is learned anew while inserts are held back, and the count stands still.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

_LOOK_SECONDS = 1.0  # between two looks at most: others may be quicker than this actor


class Published(NamedTuple):
    """What the learner said of its progress with its newest parameters."""

    version: int
    steps: int  # global agent steps


class StepBudget:
    """What one of a run's actors may still insert."""

    def __init__(
        self,
        *,
        total_steps: int,
        num_actors: int,
        pending_steps: int,
        read_inserts: Callable[[], int | None],
        newest: Callable[[], Published],
        settle: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ):
        """Each actor has at most `pending_steps` under way that replay has not counted.

        `read_inserts` is replay's count, None if it does not answer; `settle` returns when nothing
        of this actor's is under way.
        """
        self._total_steps, self._num_actors = total_steps, num_actors
        self._pending_steps = num_actors * pending_steps
        self._read_inserts, self._newest, self._settle = read_inserts, newest, settle
        self._clock = clock
        self._looked_at = -math.inf
        self._left: float = math.inf
        self._share: float = 0
        self._inserts = 0
        self._published: Published | None = None
        self._before = 0  # steps of the run that the server's count has not got

    def take(self, steps: int) -> bool:
        """Whether these steps may be inserted now; they count as inserted then."""
        if steps == 0:
            return True
        if steps > self._share or self._clock() - self._looked_at >= _LOOK_SECONDS:
            self._look()
        if self._left <= 0:
            return False
        self._share -= steps
        return True

    def _look(self) -> None:
        self._looked_at = self._clock()
        self._left = self._count_left()
        unseen = self._pending_steps
        if self._left <= 2 * unseen:
            # Near the end it has to be exact. Others settle too before they take more.
            self._settle()
            self._left, unseen = self._count_left(), 0
        self._share = (self._left - unseen) / (2 * self._num_actors)

    def _count_left(self) -> float:
        """Steps to the end of the run; infinite while the server does not answer."""
        inserts = self._read_inserts()
        if inserts is None:
            return math.inf
        if inserts < self._inserts:
            self._before = 0  # a server that restarted, and counts from an earlier number
        self._inserts = inserts
        published = self._newest()
        if published != self._published:
            self._published = published
            before = max(published.steps - inserts, 0)
            held_back = self._left <= 0
            self._before = before if held_back else max(before, self._before)
        return self._total_steps - (self._before + inserts)
