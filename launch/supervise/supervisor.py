"""The host supervisor: runs nodes as processes on this host, restarts them, stops them in order.

It knows nothing of what nodes do: a node is a command, an environment and a log file. It must run
in the main thread of its process, because the kernel ties children to the thread that made them:
when the supervisor dies, however it dies, the kernel kills them (PR_SET_PDEATHSIG).
"""

import dataclasses
import enum
import pathlib
import signal
import time
from collections.abc import Callable, Sequence

from launch.host_name import this_host
from launch.supervise.node_process import (
    SUSPENDED_SECONDS,
    NodeProcess,
    NodeSpec,
    State,
)
from launch.supervise.status_file import write_host_status

_TICK_SECONDS = 0.2
_STATUS_SECONDS = 2.0
_KILL_SECONDS = 10.0  # for the kernel to reap what got SIGKILL


class Outcome(enum.Enum):
    """How a supervised run ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclasses.dataclass(frozen=True)
class StopStep:
    """One step of an orderly stop: these roles are given some seconds until they are killed."""

    roles: frozenset[str]
    seconds: float
    ask: bool = True  # send SIGTERM; otherwise they are known to end by themselves


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
        self._nodes = [NodeProcess(spec, restart_variable) for spec in specs]
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
                self._on_event(failed[0].last_words())
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

    def _stop(self, nodes: Sequence[NodeProcess], step: StopStep) -> None:
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

    def _wait(self, nodes: Sequence[NodeProcess], seconds: float) -> bool:
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
                self._on_event(f"{node.label} was suspended for {SUSPENDED_SECONDS:.0f} s: killed")
                node.signal(signal.SIGKILL)
            before = node.state, node.restarts
            node.tick(now, may_start=self._run_state == "running")
            if (node.state, node.restarts) != before:
                self._announce(node)
        self._write_status(force=False)
        self._on_tick()
        time.sleep(_TICK_SECONDS)

    def _announce(self, node: NodeProcess) -> None:
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
