"""One node's process over its restarts: started, watched, signaled, and given up after a while."""

import ctypes
import dataclasses
import enum
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from launch import heartbeat
from launch.errors import ExitCode
from launch.layout import NodeName
from launch.supervise.log_file import last_line, open_log
from launch.supervise.node_start import Process, Start
from launch.supervise.proc_stat import state_of
from launch.supervise.progress import Progress

# Where a node finds replay: host:port, or unix:path.
REPLAY_VARIABLE = "VANTAGE_REPLAY"
# "INDEX STATUS_FILE" of an actor host that shares no file system with the learner's.
HOST_VARIABLE = "VANTAGE_HOST"
_MAX_FAILURES = 5
SUSPENDED_SECONDS = 10.0
# A node that worked for this long has not failed "in a row" with the time before.
_WORKED_SECONDS = 30.0
_MAX_BACKOFF_SECONDS = 30.0
# On this signal a node writes the stacks of all its threads to its log.
DUMP_SIGNAL = signal.SIGUSR2
_DUMP_SECONDS = 1.0


class State(enum.Enum):
    """What a node is doing."""

    WAITING = "waiting"  # for its back-off to pass
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"  # ended by itself, with success
    STOPPED = "stopped"
    FAILED = "failed"  # gave up restarting it


@dataclasses.dataclass(frozen=True)
class Program:
    """Starts a node as a program of its own."""

    command: Sequence[str]
    environment: Mapping[str, str]
    enter: Callable[[], None] | None = None  # called in the process before its command
    files: Sequence[int] = ()  # open files that it inherits

    def __call__(
        self, *, variables: Mapping[str, str], log: int, pipe: int
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self.command,
            env={**self.environment, **variables, heartbeat.VARIABLE: str(pipe)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(pipe, *self.files),
            # Its own session: Ctrl-C reaches the supervisor alone, which stops nodes in order.
            start_new_session=True,
            preexec_fn=die_with_parent(os.getpid(), self.enter),
        )


@dataclasses.dataclass(frozen=True)
class NodeSpec:
    """How to start a node, and what its failures mean."""

    name: NodeName
    start: Start
    log_file: pathlib.Path
    stuck_seconds: float  # how long a loop may take to come round; see `heartbeat.Phase`
    essential: bool = True  # the run cannot go on without it
    saves: bool = False  # writes a checkpoint when it is told to stop


class NodeProcess:
    """A node, whether its process is up or waits for its next start."""

    def __init__(self, spec: NodeSpec, restart_variable: str):
        self.spec = spec
        self.state = State.WAITING
        self.restarts = -1
        self.exit_code: int | None = None
        self.problem: str | None = None  # why this process of it is being killed
        self.progress: Progress | None = None
        self._restart_variable = restart_variable
        self._process: Process | None = None
        self._log: IO[bytes] | None = None
        self._start_after = 0.0
        self._failures = 0  # in a row
        self._furthest = 0  # over all its lives
        self._suspended_since: float | None = None
        self._kill_after: float | None = None

    @property
    def label(self) -> str:
        return str(self.spec.name)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def is_up(self) -> bool:
        """Whether there is a process whose end has not been noticed yet."""
        return self.state in (State.RUNNING, State.STOPPING)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.alive else None

    @property
    def keeps_failing(self) -> bool:
        """Whether it has failed so often in a row that the next start will hardly help."""
        return self._failures >= _MAX_FAILURES

    @property
    def just_gave_up(self) -> bool:
        """Whether its last failure was the one too many."""
        return self.state is State.WAITING and self._failures == _MAX_FAILURES

    @property
    def waited_in_vain(self) -> bool:
        """Whether it ended because another role was away: no failure of its own."""
        return self.exit_code == ExitCode.COME_BACK

    @property
    def gave_up(self) -> bool:
        """Whether it said itself that starting it again would only repeat its failure."""
        return self.exit_code == ExitCode.GIVE_UP

    @property
    def finished(self) -> bool:
        """Whether it has done its work, even where its process serves others until it is told."""
        said = self.progress is not None and self.progress.finished(self.spec.name.role)
        return said or self.state is State.DONE

    @property
    def unsaved(self) -> bool:
        """Whether what it did since its last checkpoint is lost."""
        worked = self.progress is not None and self.progress.has_worked
        return self.spec.saves and worked and self.exit_code != 0

    def tick(self, now: float, *, may_start: bool) -> None:
        """Starts the node when it is due, and notices when it stands still or has ended."""
        if self.state is State.WAITING and not may_start:
            self.state = State.STOPPED
        elif self.state is State.WAITING and now >= self._start_after:
            self._start(now)
        elif self.is_up and not self.alive:
            self._ended(now)
        elif self.is_up:
            self._watch(now)

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.alive:
            self._process.send_signal(number)

    def request_stop(self, *, kill: bool = False) -> None:
        """Its end is no failure then."""
        if self.alive:
            self.state = State.STOPPING
            self.signal(signal.SIGKILL if kill else signal.SIGTERM)

    def last_words(self) -> str:
        """Why it is not started again, or only now and then."""
        log = self.spec.log_file
        if self.gave_up:
            return f"{self.label} gave up: {last_line(log)}"
        failed = f"{self.label} failed {self._failures} times in a row"
        return f"{failed}: {self.problem or last_line(log)} (see {log})"

    def _start(self, now: float) -> None:
        self.restarts += 1
        self.problem = self._kill_after = self._suspended_since = None
        self._log = open_log(self.spec.log_file)
        self.progress = Progress(now, self.spec.stuck_seconds)
        self._process = self.spec.start(
            variables={self._restart_variable: str(self.restarts)},
            log=self._log.fileno(),
            pipe=self.progress.descriptor,
        )
        self.progress.close_writing()
        self.state = State.RUNNING

    def _watch(self, now: float) -> None:
        """Kills a process that stands still: it holds up everyone, and nobody else sees it."""
        assert self.progress is not None
        self.progress.poll(now)
        if self._kill_after is not None:
            if now >= self._kill_after:
                self.signal(signal.SIGKILL)
            return
        if self._suspended_too_long(now):
            self.problem = f"was suspended for {SUSPENDED_SECONDS:.0f} s"
            self._kill_after = now
        elif self.state is State.RUNNING:  # a stop has bounds of its own
            self._check_progress(now, self.progress)

    def _check_progress(self, now: float, progress: Progress) -> None:
        standstill = progress.standstill(now)
        if standstill is None:
            return
        if self.pid is not None and state_of(self.pid) == "t":
            progress.forgive(now)  # a debugger holds it
            return
        self.problem = str(standstill)
        self.signal(DUMP_SIGNAL)
        self._kill_after = now + _DUMP_SECONDS

    def _suspended_too_long(self, now: float) -> bool:
        """Whether a signal has kept it from running until it counts as dead.

        A debugger's stop is another state, and left alone.
        """
        if self.pid is None or state_of(self.pid) != "T":
            self._suspended_since = None
        elif self._suspended_since is None:
            self._suspended_since = now
        return self._suspended_since is not None and now - self._suspended_since > SUSPENDED_SECONDS

    def _ended(self, now: float) -> None:
        assert self._process is not None and self._log is not None and self.progress is not None
        self.progress.poll(now)
        self.progress.close()
        self.exit_code = self._process.returncode
        self._log.close()
        if self.state is State.STOPPING:
            self.state = State.STOPPED
        elif self.exit_code == 0:
            self.state = State.DONE
        else:
            self._start_after = now + self._backoff_seconds()
            gives_up = (self.keeps_failing or self.gave_up) and self.spec.essential
            self.state = State.FAILED if gives_up else State.WAITING

    def _backoff_seconds(self) -> float:
        assert self.progress is not None
        if not self.waited_in_vain:
            worked = self.progress.worked_seconds >= _WORKED_SECONDS
            # One that always fails at the same update gets no further, however long it works.
            furthest = self.progress.furthest
            headway = worked and (furthest is None or furthest > self._furthest)
            self._furthest = max(self._furthest, furthest or 0)
            self._failures = 1 if headway else self._failures + 1
        doublings = min(max(self._failures - 1, 0), _MAX_FAILURES)
        return min(2.0**doublings, _MAX_BACKOFF_SECONDS)


def die_with_parent(parent: int, enter: Callable[[], None] | None = None) -> Callable[[], None]:
    """Runs in the child between fork and exec: the kernel kills it when its parent is gone.

    `enter` is called first: the kernel forgets its task when a process enters a namespace.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    pr_set_pdeathsig = 1

    def prepare() -> None:
        if enter is not None:
            enter()
        libc.prctl(pr_set_pdeathsig, signal.SIGKILL)
        # The parent may have died before the line above.
        if os.getppid() != parent:
            os._exit(1)

    return prepare


_DIE_AND_BECOME = """
import ctypes, os, signal, sys
parent, *command = sys.argv[1:]
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() == int(parent):
    os.execvp(command[0], command)
"""


def dying_with_parent(command: Sequence[str]) -> list[str]:
    """The same for a parent that must not fork in Python, because JAX has threads in it."""
    return [sys.executable, "-I", "-S", "-c", _DIE_AND_BECOME, str(os.getpid()), *command]
