"""The host supervisor: runs nodes as processes on this host, restarts them, stops them in order.

It knows nothing of what nodes do: a node is a command, an environment and a log file. It must run
in the main thread of its process, because the kernel ties children to the thread that made them:
when the supervisor dies, however it dies, the kernel kills them (PR_SET_PDEATHSIG).
"""

import ctypes
import dataclasses
import enum
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from launch.host_name import this_host
from launch.layout import NodeName
from launch.supervise.status_file import write_host_status

_TICK_SECONDS = 0.2
_QUICK_FAILURE_SECONDS = 30.0
_MAX_QUICK_FAILURES = 5
_MAX_BACKOFF_SECONDS = 30.0
_STATUS_SECONDS = 2.0
_KILL_SECONDS = 10.0  # for the kernel to reap what got SIGKILL
_SUSPENDED_SECONDS = 10.0


class State(enum.Enum):
    """What a node is doing."""

    WAITING = "waiting"  # for its back-off to pass
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"  # ended by itself, with success
    STOPPED = "stopped"
    FAILED = "failed"  # gave up restarting it


class Outcome(enum.Enum):
    """How a supervised run ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True)
class NodeSpec:
    """How to start a node."""

    name: NodeName
    command: Sequence[str]
    environment: Mapping[str, str]
    log_file: pathlib.Path


@dataclasses.dataclass(frozen=True)
class StopStep:
    """One step of an orderly stop: these roles, with so long until they are killed."""

    roles: frozenset[str]
    seconds: float
    ask: bool = True  # send SIGTERM; otherwise they are known to end by themselves


class _Node:
    """One node's process over its restarts."""

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
        """Whether a signal has kept it from running for so long that it counts as dead.

        It would hold up everyone who waits for it, and nobody else sees that it does not run. A
        debugger's stop is another state, and left alone.
        """
        if self.pid is None or not _is_suspended(self.pid):
            self._suspended_since = None
        elif self._suspended_since is None:
            self._suspended_since = now
        return (
            self._suspended_since is not None and now - self._suspended_since > _SUSPENDED_SECONDS
        )

    def _start(self, now: float) -> None:
        self.restarts += 1
        self._log = _open_log(self.spec.log_file)
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


class Supervisor:
    """Runs a set of nodes until those of `finishing_role` are done, or a stop is asked for."""

    def __init__(
        self,
        specs: Sequence[NodeSpec],
        *,
        finishing_role: str,
        stop_steps: Sequence[StopStep],
        finish_steps: Sequence[StopStep],
        restart_variable: str,
        status_file: pathlib.Path,
        stop_requested: Callable[[], bool],
        on_tick: Callable[[], None],
        on_event: Callable[[str], None],
    ):
        """`stop_steps` are for a stop in mid-training, `finish_steps` after the last update."""
        self._nodes = [_Node(spec, restart_variable) for spec in specs]
        self._finishing_role = finishing_role
        self._stop_steps, self._finish_steps = stop_steps, finish_steps
        self._status_file = status_file
        self._stop_requested = stop_requested
        self._on_tick, self._on_event = on_tick, on_event
        self._kill_now = False
        self._run_state = "running"
        self._status_at = 0.0
        self._status_problem: str | None = None
        self._started = time.time()

    def kill(self) -> None:
        """Gives up on an orderly stop (second Ctrl-C)."""
        self._kill_now = True

    def run(self) -> Outcome:
        """Runs everything to its end; no process of it is left afterwards."""
        try:
            return self._supervise()
        finally:
            for node in self._nodes:
                node.signal(signal.SIGKILL)
            self._kill_now = False
            self._wait(self._nodes, _KILL_SECONDS)
            self._write_status(force=True)

    def _supervise(self) -> Outcome:
        while True:
            self._tick()
            if self._stop_requested():
                return self._end(Outcome.STOPPED, self._stop_steps)
            failed = [node for node in self._nodes if node.state is State.FAILED]
            if failed:
                self._on_event(_failure(failed[0]))
                return self._end(Outcome.FAILED, self._stop_steps)
            finishing = [n for n in self._nodes if n.spec.name.role == self._finishing_role]
            if finishing and all(node.state is State.DONE for node in finishing):
                return self._end(Outcome.FINISHED, self._finish_steps)

    def _end(self, outcome: Outcome, steps: Sequence[StopStep]) -> Outcome:
        self._run_state = "stopping"
        for step in steps:
            self._stop([n for n in self._nodes if n.spec.name.role in step.roles], step)
        self._run_state = outcome.value
        return outcome

    def _stop(self, nodes: Sequence[_Node], step: StopStep) -> None:
        if step.ask:
            for node in nodes:
                node.request_stop()
        if self._wait(nodes, step.seconds):
            return
        for node in nodes:
            if node.alive:
                self._on_event(f"{node.label} did not stop within {step.seconds:.0f} s: killed")
                node.signal(signal.SIGKILL)
        self._wait(nodes, _KILL_SECONDS)

    def _wait(self, nodes: Sequence[_Node], seconds: float) -> bool:
        """Waits until the nodes have ended; False when time is up or patience is (Ctrl-C)."""
        deadline = time.monotonic() + seconds
        while any(node.alive for node in nodes):
            if self._kill_now or time.monotonic() > deadline:
                return False
            self._tick()
        self._tick()
        return True

    def _tick(self) -> None:
        now = time.monotonic()
        for node in self._nodes:
            if node.suspended_too_long(now):
                self._on_event(f"{node.label} was suspended for {_SUSPENDED_SECONDS:.0f} s: killed")
                node.signal(signal.SIGKILL)
            before = node.state, node.restarts
            node.tick(now, may_start=self._run_state == "running")
            if (node.state, node.restarts) != before:
                self._announce(node)
        self._write_status(force=False)
        self._on_tick()
        time.sleep(_TICK_SECONDS)

    def _announce(self, node: _Node) -> None:
        self._write_status(force=True)
        if node.state is State.RUNNING and node.restarts > 0:
            self._on_event(f"{node.label} restarted ({node.restarts})")
        elif node.state is State.WAITING:
            self._on_event(
                f"{node.label} ended with code {node.exit_code}; see {node.spec.log_file}"
            )
        elif node.state is State.STOPPED and (node.exit_code or 0) > 0:
            self._on_event(
                f"{node.label} failed while it stopped (code {node.exit_code}); "
                f"see {node.spec.log_file}"
            )

    def _write_status(self, *, force: bool) -> None:
        now = time.monotonic()
        if not force and now - self._status_at < _STATUS_SECONDS:
            return
        self._status_at = now
        nodes = [
            {
                "role": node.spec.name.role,
                "index": node.spec.name.index,
                "host": this_host(),
                "pid": node.pid,
                "state": node.state.value,
                "restarts": max(node.restarts, 0),
                "exit_code": node.exit_code,
            }
            for node in self._nodes
        ]
        try:
            write_host_status(
                self._status_file, self._run_state, started=self._started, nodes=nodes
            )
            self._status_problem = None
        except OSError as error:
            # A full disk must not end the training; say it once.
            if error.strerror != self._status_problem:
                self._on_event(f"cannot write {self._status_file}: {error.strerror}")
            self._status_problem = error.strerror


def _failure(node: _Node) -> str:
    try:
        lines = node.spec.log_file.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    last = lines[-1] if lines else "no output"
    failed = f"{node.label} failed {_MAX_QUICK_FAILURES} times in a row"
    return f"{failed}: {last} (see {node.spec.log_file})"


def _open_log(path: pathlib.Path) -> IO[bytes]:
    """The log, or nothing in its place: a full disk must not keep a node from starting."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")
    except OSError:
        return open(os.devnull, "ab")


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
