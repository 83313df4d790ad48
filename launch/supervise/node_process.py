"""One node's process over its restarts: started, watched, signaled, and given up after a while."""

import ctypes
import dataclasses
import enum
import os
import pathlib
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from launch.layout import NodeName
from launch.supervise.log_file import last_line, open_log

_MAX_QUICK_FAILURES = 5
SUSPENDED_SECONDS = 10.0
_QUICK_FAILURE_SECONDS = 30.0
_MAX_BACKOFF_SECONDS = 30.0


class State(enum.Enum):
    """What a node is doing."""

    WAITING = "waiting"  # for its back-off to pass
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"  # ended by itself, with success
    STOPPED = "stopped"
    FAILED = "failed"  # gave up restarting it


@dataclasses.dataclass(frozen=True)
class NodeSpec:
    """How to start a node."""

    name: NodeName
    command: Sequence[str]
    environment: Mapping[str, str]
    log_file: pathlib.Path


class NodeProcess:
    """A node, whether its process is up or waits for its next start."""

    def __init__(self, spec: NodeSpec, restart_variable: str):
        self.spec = spec
        self.state = State.WAITING
        self.restarts = -1
        self._restart_variable = restart_variable
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._started_at = 0.0
        self._start_after = 0.0
        self._quick_failures = 0
        self._suspended_since: float | None = None
        self.exit_code: int | None = None

    @property
    def label(self) -> str:
        return str(self.spec.name)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.alive else None

    def tick(self, now: float, *, may_start: bool) -> None:
        """Starts the node when it is due, and notices when it ended."""
        if self.state is State.WAITING and not may_start:
            self.state = State.STOPPED
        elif self.state is State.WAITING and now >= self._start_after:
            self._start(now)
        elif self.state in (State.RUNNING, State.STOPPING) and not self.alive:
            self._ended(now)

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.alive:
            self._process.send_signal(number)

    def request_stop(self) -> None:
        if self.alive:
            self.state = State.STOPPING
            self.signal(signal.SIGTERM)

    def suspended_too_long(self, now: float) -> bool:
        """Whether a signal has kept it from running until it counts as dead.

        It would hold up everyone who waits for it, and nobody else sees that it does not run. A
        debugger's stop is another state, and left alone.
        """
        if self.pid is None or not _is_suspended(self.pid):
            self._suspended_since = None
        elif self._suspended_since is None:
            self._suspended_since = now
        return self._suspended_since is not None and now - self._suspended_since > SUSPENDED_SECONDS

    def last_words(self) -> str:
        """Why it is not started again."""
        log = self.spec.log_file
        failed = f"{self.label} failed {_MAX_QUICK_FAILURES} times in a row"
        return f"{failed}: {last_line(log)} (see {log})"

    def _start(self, now: float) -> None:
        self.restarts += 1
        self._log = open_log(self.spec.log_file)
        self._process = subprocess.Popen(
            self.spec.command,
            env={**self.spec.environment, self._restart_variable: str(self.restarts)},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            # Its own session: Ctrl-C reaches the supervisor alone, which stops nodes in order.
            start_new_session=True,
            preexec_fn=die_with_parent(os.getpid()),
        )
        self._started_at, self.state = now, State.RUNNING

    def _ended(self, now: float) -> None:
        assert self._process is not None and self._log is not None
        self.exit_code = self._process.returncode
        self._log.close()
        if self.state is State.STOPPING:
            self.state = State.STOPPED
        elif self.exit_code == 0:
            self.state = State.DONE
        else:
            quick = now - self._started_at < _QUICK_FAILURE_SECONDS
            self._quick_failures = self._quick_failures + 1 if quick else 1
            backoff = min(2.0 ** (self._quick_failures - 1), _MAX_BACKOFF_SECONDS)
            self._start_after = now + backoff
            gives_up = self._quick_failures >= _MAX_QUICK_FAILURES
            self.state = State.FAILED if gives_up else State.WAITING


def _is_suspended(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "T"


def die_with_parent(parent: int) -> Callable[[], None]:
    """Runs in the child between fork and exec: the kernel kills it when its parent is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    pr_set_pdeathsig = 1

    def prepare() -> None:
        libc.prctl(pr_set_pdeathsig, signal.SIGKILL)
        # The parent may have died before the line above.
        if os.getppid() != parent:
            os._exit(1)

    return prepare
