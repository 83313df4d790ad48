"""What the loops of a node's process say of themselves, and for how long they have said nothing."""

import os
from typing import NamedTuple

from launch.heartbeat import Beat, Phase, decode

_READ_BYTES = 1 << 16
# A loop that was slow before may be slow again, by this factor: rounds of a slow machine differ.
_SLACK = 2.0


class Standstill(NamedTuple):
    """A loop that has not come round for longer than it may."""

    seconds: float
    last: Beat

    def __str__(self) -> str:
        return f"made no progress for {self.seconds:.0f} s (last: {self.last})"


class Heard(NamedTuple):
    """What a loop said last, and whether it did anything but start and wait."""

    beat: Beat
    has_worked: bool


class _Loop:
    """One loop, since its first beat."""

    def __init__(self, beat: Beat, now: float):
        self.last, self.heard_at = beat, now
        self._longest: dict[Phase, float] = {}
        self._worked_from = now if beat.phase.is_work else None
        self._worked_until = now
        self.furthest = beat.number if beat.phase.lasting else None

    def hear(self, beat: Beat, now: float) -> None:
        phase = self.last.phase
        self._longest[phase] = max(self._longest.get(phase, 0.0), now - self.heard_at)
        self.last, self.heard_at = beat, now
        if beat.phase.is_work:
            self._worked_from = now if self._worked_from is None else self._worked_from
            self._worked_until = now
        if beat.phase.lasting:
            self.furthest = max(beat.number, self.furthest or 0)

    def bound(self, stuck_seconds: float) -> float:
        """How long it may take to come round from where it is."""
        # The first round compiles, and does once what every later round does.
        earlier = [self._longest.get(p, 0.0) for p in (self.last.phase, Phase.COMPILING)]
        return max(self.last.phase.patience * stuck_seconds, _SLACK * max(earlier))

    @property
    def has_worked(self) -> bool:
        return self._worked_from is not None

    @property
    def worked_seconds(self) -> float:
        return 0.0 if self._worked_from is None else self._worked_until - self._worked_from


class Progress:
    """The reading end of a process's heartbeat, from its start to its end.

    Times are the reader's own (see `own_time`): hosts, and clocks that are set, do not matter.
    """

    def __init__(self, now: float, stuck_seconds: float):
        self._stuck_seconds = stuck_seconds
        # Neither side ever waits for the other.
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._rest = b""
        self._birth = _Loop(Beat(Phase.STARTING), now)
        self._loops: dict[str, _Loop] = {}

    @property
    def descriptor(self) -> int:
        """What the process beats into."""
        return self._writing

    def poll(self, now: float) -> None:
        """Takes in what was said since the last call."""
        try:
            lines = (self._rest + os.read(self._reading, _READ_BYTES)).split(b"\n")
        except BlockingIOError:
            return
        self._rest = lines.pop()
        for line in lines:
            try:
                name, beat = decode(line)
            except (ValueError, KeyError):
                continue  # not a beat: whatever a process writes must not end its supervisor
            loop = self._loops.setdefault(name, _Loop(beat, now))
            loop.hear(beat, now)

    def standstill(self, now: float) -> Standstill | None:
        """The loop that stands still for longer than it may, if there is one."""
        for loop in self._heard():
            seconds = now - loop.heard_at
            if seconds > loop.bound(self._stuck_seconds):
                return Standstill(seconds, loop.last)
        return None

    def forgive(self, now: float) -> None:
        """Counts the time so far for nobody: the process was not free to run."""
        for loop in self._heard():
            loop.heard_at = now

    def age_seconds(self, now: float) -> float:
        """For how long the quietest loop has said nothing."""
        return max(now - loop.heard_at for loop in self._awake())

    @property
    def has_worked(self) -> bool:
        """Whether it did anything but start and wait."""
        return any(loop.has_worked for loop in self._heard())

    @property
    def worked_seconds(self) -> float:
        """From the first sign of work to the last."""
        return max(loop.worked_seconds for loop in self._heard())

    @property
    def furthest(self) -> int | None:
        """The furthest it got by a number that goes on over restarts; None if it has none."""
        return max((n for loop in self._heard() if (n := loop.furthest) is not None), default=None)

    def heard(self, loop: str) -> Heard | None:
        """What a loop said last; None if it has said nothing, or there is no such loop."""
        if loop not in self._loops:
            return None
        return Heard(self._loops[loop].last, self._loops[loop].has_worked)

    def finished(self, loop: str) -> bool:
        """Whether a loop has said that its work is done."""
        heard = self.heard(loop)
        return heard is not None and heard.beat.phase is Phase.FINISHED

    def __str__(self) -> str:
        return ", ".join(str(loop.last) for loop in self._awake())

    def close_writing(self) -> None:
        """Leaves the writing end to the process alone."""
        os.close(self._writing)

    def close(self) -> None:
        """Of a process that has ended nothing more is heard; what it said last is kept."""
        os.close(self._reading)

    def _heard(self) -> list[_Loop]:
        return list(self._loops.values()) or [self._birth]

    def _awake(self) -> list[_Loop]:
        """Those that have something to do; all, if none has."""
        return [loop for loop in self._heard() if not loop.last.phase.rests] or self._heard()
