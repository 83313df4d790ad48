"""The heartbeat of a node: its loop tells the host's supervisor what it does and how far it is.

The loop that does the work beats, never a thread beside it, which would live on when the loop
hangs. A beat is one short line in a pipe that the supervisor opened: no disk, no network, and
nobody to wait for. A process that no supervisor started beats into nothing.

A loop that waits goes round and beats too; only one that does not come round stands still.

Beats are also what a node's log tells of it: every phase when it is first entered, and a line a
minute, with whatever its loop last remarked on itself.
"""

import dataclasses
import enum
import logging
import math
import os
import time
from collections.abc import Callable
from typing import NamedTuple

# The file descriptor of the pipe; the supervisor sets it.
VARIABLE = "VANTAGE_HEARTBEAT"
_PERIOD_SECONDS = 0.25  # between two beats of the same phase
_LOG_SECONDS = 60.0  # between two lines in the log


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What is known of a phase."""

    text: str  # what to call it; {} is how far it is
    patience: float  # how long a round may take, in multiples of the run's `stuck_seconds`
    is_work: bool = False
    lasting: bool = False  # whether its number goes on over restarts


class Phase(enum.Enum):
    """What a loop is doing. The one table of how long it may take to come round."""

    STARTING = _Kind("starting", 5.0)  # imports from a slow disk
    RESTORING = _Kind("restoring a checkpoint", 15.0)
    COMPILING = _Kind("compiling", 15.0)
    UPDATING = _Kind("update {:,}", 1.0, is_work=True, lasting=True)
    PLAYING = _Kind("step {:,}", 1.0, is_work=True)
    EVALUATING = _Kind("evaluating, step {:,}", 1.0, is_work=True)
    # A server that is away holds it for a minute at a time.
    PUBLISHING = _Kind("publishing version {:,}", 5.0)
    SERVING = _Kind("serving, {:,} inserts", 2.0, is_work=True)  # what it holds is precious
    RECORDING = _Kind("row {:,}", 2.0, is_work=True)  # files of a slow disk
    RELAYING = _Kind("{:,} connections", 1.0, is_work=True)
    # A server that comes back after minutes is asked again by gRPC up to two minutes later.
    WAITING_FOR_DATA = _Kind("waiting for data", 3.0)
    WAITING_FOR_PARAMETERS = _Kind("waiting for parameters", 1.0)
    WAITING_FOR_REPLAY = _Kind("waiting for replay", 1.0)
    SAVING = _Kind("writing a checkpoint", 15.0)  # a full replay table takes minutes
    SAVED = _Kind("wrote a checkpoint", math.inf)
    FINISHED = _Kind("finished", math.inf)

    @property
    def patience(self) -> float:
        """How long a round may take, in multiples of the run's `stuck_seconds`."""
        return self.value.patience

    @property
    def rests(self) -> bool:
        """Whether the loop has nothing to do, and need not come round."""
        return math.isinf(self.value.patience)

    @property
    def is_work(self) -> bool:
        """Whether the loop does what it is there for, instead of preparing or waiting."""
        return self.value.is_work

    @property
    def lasting(self) -> bool:
        """Whether its number goes on over restarts: from the checkpoint, not from zero."""
        return self.value.lasting


class Beat(NamedTuple):
    """What a loop said last."""

    phase: Phase
    number: int = 0  # how far it is, by what the phase counts

    def __str__(self) -> str:
        return self.phase.value.text.format(self.number)


class Heartbeat:
    """Beats for one loop of this process."""

    def __init__(
        self,
        loop: str,
        descriptor: int | None,
        clock: Callable[[], float] = time.monotonic,
        log_seconds: float = _LOG_SECONDS,
    ):
        self._loop, self._descriptor, self._clock = loop, descriptor, clock
        self._log_seconds = log_seconds
        self._phase: Phase | None = None
        self._entered: set[Phase] = set()
        self._next_at = 0.0
        self._log_at = math.inf  # from the first phase on
        self._remark = ""

    @property
    def is_heard(self) -> bool:
        """Whether a supervisor listens: then this process is its node's own, and ends with it."""
        return self._descriptor is not None

    def remark(self, text: str) -> None:
        """Something worth a place in the log's next line."""
        self._remark = text

    def beat(self, phase: Phase, number: int = 0) -> None:
        """Says that the loop has come round; a change of phase is said at once, others in turn."""
        now = self._clock()
        # Every phase once: the log then tells how long a start took, and what took it.
        if phase not in self._entered or now >= self._log_at:
            self._entered.add(phase)
            self._log_at = now + self._log_seconds
            logging.info(
                "%s: %s%s", self._loop, Beat(phase, number), self._remark and f"; {self._remark}"
            )
        if self._descriptor is None:
            return
        if phase is self._phase and now < self._next_at:
            return
        self._phase, self._next_at = phase, now + _PERIOD_SECONDS
        try:
            os.write(self._descriptor, encode(self._loop, Beat(phase, number)))
        except BlockingIOError:
            pass  # the supervisor is suspended; once it reads on, the next beat is soon enough
        except BrokenPipeError:
            pass  # the supervisor is dead, and the kernel is about to end this process


def of_this_process(loop: str, *, log_seconds: float = _LOG_SECONDS) -> Heartbeat:
    """The heartbeat of a loop, named after its role: one process may run two of them."""
    descriptor = os.environ.get(VARIABLE)
    return Heartbeat(loop, None if descriptor is None else int(descriptor), log_seconds=log_seconds)


def encode(loop: str, beat: Beat) -> bytes:
    """A line; shorter than what a pipe takes as a whole."""
    return f"{loop} {beat.phase.name} {beat.number}\n".encode()


def decode(line: bytes) -> tuple[str, Beat]:
    """Loop and beat of an encoded line."""
    loop, phase, number = line.decode().split()
    return loop, Beat(Phase[phase], int(number))
