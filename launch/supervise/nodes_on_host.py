"""Runs some of a run's nodes under the supervisor of this host: all of them, or a host's share."""

import dataclasses
import functools
import os
import pathlib
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import portpicker

from launch.config import Config
from launch.invocation import program_command
from launch.layout import NodeName
from launch.monitor.display import RunDisplay
from launch.monitor.view import make_view
from launch.run_dir import RunDir
from launch.seeds import RESTART_VARIABLE
from launch.supervise.compile_cache import new_compile_cache
from launch.supervise.fork_server import ForkServer
from launch.supervise.fork_server_entry import Target
from launch.supervise.log_echo import LogEcho
from launch.supervise.namespace import Namespace
from launch.supervise.node_process import (
    HOST_VARIABLE,
    REPLAY_VARIABLE,
    NodeProcess,
    NodeSpec,
    Program,
)
from launch.supervise.node_start import Start
from launch.supervise.phases import RunPhases
from launch.supervise.stop_order import stop_order
from launch.supervise.stop_signals import StopSignals
from launch.supervise.supervisor import Outcome, Supervisor
from launch.terminal import make_console, say

# Training goes on without them; those who learn, play or keep what was played cannot be missed.
_OBSERVERS = frozenset({"evaluator", "monitor"})
_SAVERS = frozenset({"learner", "replay"})
NODE_MODULE = "launch.supervise.node_entry"
# gRPC would ask a proxy for the way to another host; nodes need nothing else from outside.
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")


@dataclasses.dataclass(frozen=True)
class RelayNode:
    """One end of the gate, as a node of this host."""

    role: Literal["gate", "tunnel"]
    index: int  # that of its host: their logs lie in one folder
    command: Sequence[str]
    listener: socket.socket  # ours, so that it outlives the process that is given it


@dataclasses.dataclass(frozen=True)
class Apart:
    """Of a host whose run directory is its own, and nobody else's."""

    host: int  # which of the actor hosts it is


def supervise_nodes(
    config: Config,
    run_dir: RunDir,
    names: Sequence[NodeName],
    *,
    replay_address: str,
    status_file: pathlib.Path,
    stop: StopSignals,
    node_module: str = NODE_MODULE,
    namespace: Namespace | None = None,
    relay: RelayNode | None = None,
    taken_over: Callable[[], bool] = lambda: False,
    print_logs: bool = False,
    apart: Apart | None = None,
) -> Outcome:
    """Runs the nodes until training is over, or until a signal or the stop file asks to stop.

    Each is a process of `node_module`, which a rehearsal has of its own: the learner a program, the
    others forks of one. They live in the namespace, if there is one, and reach replay at its
    address there. When another host has `taken_over`, the nodes are killed: their checkpoints would
    spoil its own. A host that is `apart` tells by telemetry how its nodes are.
    """
    told = _variables(replay_address, status_file, apart)
    forks = ForkServer({**node_environment("actor"), **told}, namespace)
    start_of = _Starts(run_dir, node_module, forks, told, namespace)
    specs = [_node_spec(config, run_dir, name, start_of(name)) for name in names]
    if relay is not None:
        specs.append(_relay_spec(config, run_dir, relay, namespace))
    logs = {str(spec.name): spec.log_file for spec in specs} if print_logs else {}
    echo = LogEcho(logs, cut=apart is not None)
    display = _make_display(config, run_dir, names)
    shown = _Shown(display, RunPhases(config.replay.warmup_steps), echo)
    order = stop_order(colocate=config.replay.colocate)
    supervisor = Supervisor(
        specs,
        finishing_role="learner",
        stop_steps=order.when_asked,
        finish_steps=order.when_finished,
        restart_variable=RESTART_VARIABLE,
        status_file=status_file,
        end_asked=functools.partial(_end_asked, run_dir, stop, taken_over),
        on_tick=shown.update,
        on_event=say,
    )
    stop.install(supervisor.kill)
    try:
        forks.start()  # it imports while the learner does
        return supervisor.run()
    finally:
        forks.close()
        shown.close()


def replay_port(config: Config) -> int:
    """Where replay is to listen on this host: the config's port, or a free one."""
    return config.replay.port or portpicker.pick_unused_port()


def node_environment(role: str) -> dict[str, str]:
    """The environment a node's process starts with."""
    kept = {name: value for name, value in os.environ.items() if name not in _PROXIES}
    environment = {**kept, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1"}
    if role == "learner":
        return environment
    # The accelerator is the learner's alone, and so are all threads but one each.
    one_thread = {
        "OMP_NUM_THREADS": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    flags = f"{environment.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    cpu_only = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "XLA_FLAGS": flags}
    return {**environment, **one_thread, **cpu_only}


def learner_environment(run_dir: RunDir) -> dict[str, str]:
    """That of the learner's process, which finds what it compiled before."""
    return {**node_environment("learner"), **new_compile_cache(run_dir.compiled)}


def _variables(
    replay_address: str, status_file: pathlib.Path, apart: Apart | None
) -> dict[str, str]:
    """What nodes are told by their environment."""
    told = {REPLAY_VARIABLE: replay_address}
    if apart is not None:
        told[HOST_VARIABLE] = f"{apart.host} {status_file}"
    return told


def _end_asked(
    run_dir: RunDir, stop: StopSignals, taken_over: Callable[[], bool]
) -> Outcome | None:
    """How the nodes are to end now, if they are."""
    if not run_dir.is_there():
        say(f"run directory '{run_dir.root}' is gone: the run cannot be saved, and stops")
        return Outcome.LOST
    if taken_over():
        say("another host has taken over this part of the run")
        return Outcome.REPLACED
    return Outcome.STOPPED if stop.requested or run_dir.stop_file.exists() else None


class _Starts(NamedTuple):
    """How each node of this host is started: the learner as a program, the others as forks."""

    run_dir: RunDir
    node_module: str
    forks: ForkServer
    told: Mapping[str, str]  # variables, for the learner; forks have them from their server
    namespace: Namespace | None

    def __call__(self, name: NodeName) -> Start:
        arguments = [str(self.run_dir.root.resolve()), name.role, str(name.index)]
        if name.role != "learner":
            return functools.partial(
                self.forks.fork, Target(str(name), self.node_module, arguments)
            )
        command = program_command(self.node_module, *arguments)
        environment = {**learner_environment(self.run_dir), **self.told}
        return Program(command, environment, _enter(self.namespace))


class _Shown(NamedTuple):
    """What is seen of the nodes here: a picture of the run, if this host draws it, and logs."""

    display: RunDisplay | None
    phase_of: RunPhases
    echo: LogEcho

    def update(self, nodes: Sequence[NodeProcess]) -> None:
        self.echo.poll()
        if self.display is not None:
            self.display.show(self.phase_of(nodes))

    def close(self) -> None:
        self.echo.poll()
        if self.display is not None:
            self.display.close()


def _enter(namespace: Namespace | None) -> Callable[[], None] | None:
    return None if namespace is None else namespace.enter


def _node_spec(config: Config, run_dir: RunDir, name: NodeName, start: Start) -> NodeSpec:
    return NodeSpec(
        name=name,
        start=start,
        log_file=run_dir.log_file(name.role, name.index),
        stuck_seconds=config.stuck_seconds,
        essential=name.role not in _OBSERVERS,
        saves=name.role in _SAVERS,
    )


def _relay_spec(
    config: Config, run_dir: RunDir, relay: RelayNode, namespace: Namespace | None
) -> NodeSpec:
    files = [relay.listener.fileno()]
    return NodeSpec(
        name=NodeName(relay.role, relay.index),
        start=Program(relay.command, node_environment(relay.role), _enter(namespace), files),
        log_file=run_dir.log_file(relay.role, relay.index),
        stuck_seconds=config.stuck_seconds,
        # Strangers talk to a gate: whatever they do to it, the run does not end by it.
        essential=relay.role != "gate",
    )


def _make_display(config: Config, run_dir: RunDir, names: Sequence[NodeName]) -> RunDisplay | None:
    """Every host could draw the picture from the shared file; the one with the monitor does."""
    if not any(name.role == "monitor" for name in names):
        return None
    return RunDisplay(config, run_dir, make_view(make_console()))
