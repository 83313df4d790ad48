"""The host supervisor: runs nodes as processes on this host, restarts them, stops them in order.

It knows nothing of what nodes do: a node is a command, an environment, a log file and a heartbeat.
One that ends is started again, and so is one that lives but stands still. It must run in the main
thread of its process, because the kernel ties children to the thread that made them: when the
supervisor dies, however it dies, the kernel kills them (PR_SET_PDEATHSIG).
"""

import dataclasses
import enum
import pathlib
import signal
import time
from collections.abc import Callable, Sequence

from launch.machine.host_name import this_host
from launch.node_status import NodeStatus
from launch.supervise.log_file import last_line
from launch.supervise.node_process import NodeProcess, NodeSpec, State
from launch.supervise.own_time import OwnTime
from launch.supervise.status_file import StatusWriter

_TICK_SECONDS = 0.2
_STATUS_SECONDS = 2.0
_KILL_SECONDS = 10.0  # for the kernel to reap what got SIGKILL


class Outcome(enum.Enum):
    """How a supervised run ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    UNSAVED = "stopped without a last checkpoint"
    KILLED = "killed"  # by a second Ctrl-C, before its last checkpoints were written
    FAILED = "failed"
    HOPELESS = "failed for good"  # and would again
    LOST = "lost"  # its folder is gone
    REPLACED = "replaced"  # by another host, which owns the run's files now


@dataclasses.dataclass(frozen=True)
class StopStep:
    """One step of an orderly stop: these roles are given some seconds until they are killed."""

    roles: frozenset[str]
    seconds: float
    ask: bool = True  # send SIGTERM; otherwise they are known to end by themselves


class Supervisor:
    """Runs a set of nodes until those of `finishing_role` are done, or an end is asked for."""

    def __init__(
        self,
        specs: Sequence[NodeSpec],
        *,
        finishing_role: str,
        stop_steps: Sequence[StopStep],
        finish_steps: Sequence[StopStep],
        restart_variable: str,
        status_file: pathlib.Path,
        end_asked: Callable[[], Outcome | None],
        on_tick: Callable[[Sequence[NodeProcess]], None],
        on_event: Callable[[str], None],
    ):
        """`stop_steps` are for a stop in mid-training, `finish_steps` after the last update."""
        self._nodes = [NodeProcess(spec, restart_variable) for spec in specs]
        self._finishing_role = finishing_role
        self._stop_steps, self._finish_steps = stop_steps, finish_steps
        self._status = StatusWriter(status_file, on_event)
        self._end_asked = end_asked
        self._asked_end: Outcome | None = None
        self._on_tick, self._on_event = on_tick, on_event
        self._kill_now = False
        self._own_time = OwnTime()
        self._run_state = "running"
        self._restartable: frozenset[str] | None = None  # roles; None: all of them
        self._status_at = 0.0

    def kill(self) -> None:
        """Gives up on an orderly stop (second Ctrl-C)."""
        self._kill_now = True

    def run(self) -> Outcome:
        """Runs everything to its end; no process of it is left afterwards."""
        try:
            return self._supervise()
        finally:
            self._restartable = frozenset()
            for node in self._nodes:
                node.signal(signal.SIGKILL)
            self._kill_now = False
            self._wait(self._nodes, _KILL_SECONDS)
            self._write_status(force=True)

    def _supervise(self) -> Outcome:
        while True:
            self._tick()
            asked = self._asked()
            if asked is not None:
                return self._end(asked, self._stop_steps)
            failed = [node for node in self._nodes if node.state is State.FAILED]
            if failed:
                self._on_event(failed[0].last_words())
                outcome = Outcome.HOPELESS if failed[0].gave_up else Outcome.FAILED
                return self._end(outcome, self._stop_steps)
            finishing = [n for n in self._nodes if n.spec.name.role == self._finishing_role]
            if finishing and all(node.finished for node in finishing):
                return self._end(Outcome.FINISHED, self._finish_steps)

    def _asked(self) -> Outcome | None:
        """The end that was asked for, which nobody takes back."""
        if self._asked_end is None:
            self._asked_end = self._end_asked()
        return self._asked_end

    def _end(self, outcome: Outcome, steps: Sequence[StopStep]) -> Outcome:
        self._run_state = "stopping"
        if outcome is Outcome.REPLACED:
            self._run_state, self._kill_now = outcome.value, True
        # What is to end by itself may need another try.
        self._restartable = frozenset().union(*(step.roles for step in steps if not step.ask))
        for step in steps:
            self._stop([n for n in self._nodes if n.spec.name.role in step.roles], step)
            asked = None if step.ask else self._asked()
            if asked is not None:
                # Nobody waits any longer for what was to end by itself.
                return self._end(asked, self._stop_steps)
        if outcome is Outcome.STOPPED and any(node.unsaved for node in self._nodes):
            outcome = Outcome.KILLED if self._kill_now else Outcome.UNSAVED
        self._run_state = outcome.value
        return outcome

    def _stop(self, nodes: Sequence[NodeProcess], step: StopStep) -> None:
        if step.ask:
            for node in nodes:
                node.request_stop(kill=self._kill_now)
        if self._wait(nodes, step.seconds, unless_asked=not step.ask):
            return
        for node in nodes:
            if node.alive:
                if not self._kill_now:
                    self._on_event(f"{node.label} did not stop within {step.seconds:.0f} s: killed")
                node.signal(signal.SIGKILL)
        self._wait(nodes, _KILL_SECONDS)

    def _wait(
        self, nodes: Sequence[NodeProcess], seconds: float, *, unless_asked: bool = False
    ) -> bool:
        """Waits until the nodes have ended; False when time is up or patience is (Ctrl-C)."""
        deadline = time.monotonic() + seconds
        while any(node.is_up or self._comes_back(node) for node in nodes):
            if self._kill_now or time.monotonic() > deadline:
                return False
            if unless_asked and self._asked() is not None:
                return True
            self._tick()
        self._tick()
        return True

    def _may_start(self, node: NodeProcess) -> bool:
        return self._restartable is None or node.spec.name.role in self._restartable

    def _comes_back(self, node: NodeProcess) -> bool:
        """Whether it is worth waiting for the next start of a node that has failed."""
        return node.state is State.WAITING and self._may_start(node) and not node.keeps_failing

    def _tick(self) -> None:
        now = self._own_time()
        for node in self._nodes:
            before = node.state, node.restarts, node.problem
            node.tick(now, may_start=self._may_start(node))
            if (node.state, node.restarts, node.problem) != before:
                self._announce(node)
        self._write_status(force=False)
        self._on_tick(self._nodes)
        time.sleep(_TICK_SECONDS)

    def _announce(self, node: NodeProcess) -> None:
        self._write_status(force=True)
        if self._asked_end is Outcome.LOST:
            return  # no checkpoint can be written, and no log be read
        for event in _events(node):
            self._on_event(event)

    def _write_status(self, *, force: bool) -> None:
        now = time.monotonic()
        if self._asked_end in (Outcome.REPLACED, Outcome.LOST):
            return  # the file is the other host's, or nobody's
        if not force and now - self._status_at < _STATUS_SECONDS:
            return
        self._status_at = now
        own_now = self._own_time()
        self._status.write(self._run_state, [_describe(node, own_now) for node in self._nodes])


def _events(node: NodeProcess) -> list[str]:
    """What has just happened to a node, in plain words; of one that keeps failing, once."""
    log = node.spec.log_file
    if node.keeps_failing and not node.spec.essential:
        warning = f"warning: {node.last_words()}; the run goes on without it"
        return [warning] if node.just_gave_up else []
    if node.state is State.RUNNING and node.problem is not None:
        return [f"{node.label} {node.problem}: killed; see {log}"]
    if node.state is State.RUNNING and node.restarts > 0:
        return [f"{node.label} restarted ({node.restarts})"]
    if node.state is State.WAITING and node.waited_in_vain:
        return [f"{node.label} starts again, by no fault of its own: {last_line(log)}"]
    if node.state is State.WAITING and node.problem is None:
        return [f"{node.label} ended with code {node.exit_code}; see {log}"]
    if node.state is State.STOPPED and (node.exit_code or 0) > 0:
        return [f"{node.label} failed while it stopped (code {node.exit_code}); see {log}"]
    return []


def _describe(node: NodeProcess, now: float) -> NodeStatus:
    """A node, as the status file has it."""
    progress = node.progress
    return NodeStatus(
        role=node.spec.name.role,
        index=node.spec.name.index,
        host=this_host(),
        pid=node.pid,
        state=node.state.value,
        restarts=max(node.restarts, 0),
        exit_code=node.exit_code,
        progress=None if progress is None else str(progress),
        progress_age_seconds=None if progress is None else progress.age_seconds(now),
    )
