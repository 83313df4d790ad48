"""Time as a process lives it: while the whole machine stands still, nobody is late."""

import time
from collections.abc import Callable

_LONGEST_STEP_SECONDS = 1.0


class OwnTime:
    """Seconds that passed while this process looked often; long gaps count as one second.

    A container that was paused, or a supervisor that was suspended, sees nodes that said nothing
    for an hour. They had no chance to, or had it and were not heard.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._looked_at = clock()
        self._seconds = 0.0

    def __call__(self) -> float:
        """The time now; call it every tick."""
        now = self._clock()
        self._seconds += min(now - self._looked_at, _LONGEST_STEP_SECONDS)
        self._looked_at = now
        return self._seconds
