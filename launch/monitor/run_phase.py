"""What a run as a whole is doing: the phases of its start, training, and those of its end."""

import time
from collections.abc import Callable
from typing import NamedTuple

from report.duration import duration_text

TRAINING = "training"
SCORING = "scoring the final parameters"


class RunPhase(NamedTuple):
    """A phase, how long the run has been in it, and how far it is."""

    name: str
    seconds: float = 0.0
    extent: str = ""  # such as 3,120/5,000; tells more than the seconds do

    @property
    def trains(self) -> bool:
        """Whether rates are those of training, and tell when it will be over."""
        return self.name == TRAINING

    def __str__(self) -> str:
        if self.extent:
            return f"{self.name} {self.extent}"
        if self.trains or self.seconds < 1.0:
            return self.name
        return f"{self.name} {duration_text(self.seconds)}"


class PhaseClock:
    """Counts the seconds of each phase."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._name: str | None = None
        self._since = 0.0

    def __call__(self, name: str, extent: str = "") -> RunPhase:
        """The phase of now."""
        if name != self._name:
            self._name, self._since = name, self._clock()
        return RunPhase(name, self._clock() - self._since, extent)


def filling(inserts: int, warmup_steps: int) -> tuple[str, str]:
    """Name and extent of the phase before replay holds enough to learn from."""
    return "filling replay", f"{inserts:,}/{warmup_steps:,}"
