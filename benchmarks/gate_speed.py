"""What the gate costs: an actor's throughput through it, and its core time beside the server's.

    python -m benchmarks.gate_speed

Server, gate and tunnel are processes of their own, as on two hosts, with one machine for all of
them. Clients insert at the rate that a quick learner takes, and follow the parameters.
"""

import contextlib
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.synchronize import Event
from typing import NamedTuple

import psutil
import reverb

from benchmarks.background import CONTEXT, in_background
from benchmarks.fleet import publish
from launch import build
from launch.config import PRESETS, Config
from launch.engines.isolate import move_to_own_network
from launch.gate import keys
from launch.gate.gate import tcp_listener
from launch.gate.tunnel import address_of, unix_listener
from launch.nodes.tables import item_layout
from launch.profile.actor_speed import make_random_actor
from launch.profile.recorded_play import increments, record_rows
from launch.profile.replay_process import ReplayProcess, replay_process
from launch.profile.timing import Cost, compare, core_seconds
from launch.run_dir import RunDir
from launch.supervise.nodes_on_host import node_environment
from learner import acting
from reverb_server.params import ParamsPuller
from reverb_server.params_check import Counters, ParamsLimits
from reverb_server.writer import ExperienceWriter

_INSERTS_PER_SECOND = 2000.0  # of all clients together
_GAMES = 2  # of each client
_START_SECONDS = 400.0  # bounds a hang
_WATCH_SECONDS = 10.0
_CALLS, _ROUNDS = 25, 20


class GateSpeed(NamedTuple):
    """The two figures, with some clients connected."""

    clients: int
    actor_throughput: float  # through the gate, as a part of that without
    gate_over_server: float  # core time on the learner's host


class _Gated(NamedTuple):
    """A server behind its gate."""

    server: ReplayProcess
    gate: psutil.Process
    tunnel: str  # the socket's path


def measure_gate(config: Config, *, clients: int) -> GateSpeed:
    """Measures both, with `clients` of them connected."""
    with replay_process(config) as server, _gated(server) as gated:
        paths = _paths(gated.tunnel, clients)
        with _playing(config, gated, paths):
            over_server = _gate_over_server(gated)
        # The actor that is watched is one of the clients.
        with _playing(config, gated, paths[1:]):
            throughput = _actor_throughput(config, gated)
    return GateSpeed(clients, throughput, over_server)


@contextlib.contextmanager
def _gated(server: ReplayProcess) -> Iterator[_Gated]:
    """Both ends of the gate, before a server."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keys.make_keys(folder / "keys", "bench", 1)
        outside = stack.enter_context(tcp_listener(0))
        near = stack.enter_context(unix_listener())
        address_file = folder / "address"
        address_file.write_text(f"localhost:{outside.getsockname()[1]}")
        port = server.address.rpartition(":")[2]
        own_key, actor_key = (str(folder / "keys" / n) for n in (keys.GATE, keys.actor_key(0)))
        gate = _start(stack, outside.fileno(), "gate", own_key, str(outside.fileno()), port)
        files = (actor_key, str(address_file))
        _start(stack, near.fileno(), "tunnel", *files, str(near.fileno()))
        reverb.Client(address_of(near)).server_info(timeout=int(_START_SECONDS))
        yield _Gated(server, gate, near.getsockname())


def _start(stack: contextlib.ExitStack, listener: int, end: str, *args: str) -> psutil.Process:
    command = [sys.executable, "-m", f"launch.gate.{end}", *args]
    child = subprocess.Popen(command, pass_fds=[listener])
    stack.callback(child.wait)
    stack.callback(child.kill)
    return psutil.Process(child.pid)


def _paths(socket_path: str, clients: int) -> list[str]:
    """Names of one socket: gRPC has one connection for each address, however many clients."""
    paths = [pathlib.Path(f"{socket_path}-{i}") for i in range(clients)]
    for path in paths:
        with contextlib.suppress(FileExistsError):
            path.symlink_to(socket_path)
    return [str(path) for path in paths]


@contextlib.contextmanager
def _playing(config: Config, gated: _Gated, paths: Sequence[str]) -> Iterator[None]:
    """Light clients through the gate, all with their first parameters when this begins."""
    ready = CONTEXT.Event()
    jobs = [functools.partial(publish, config, gated.server.address)]
    if paths:
        jobs.append(functools.partial(_clients, config, paths, ready))
    with in_background(*jobs):
        if paths and not ready.wait(_START_SECONDS):
            raise TimeoutError(f"{len(paths)} clients had no parameters in {_START_SECONDS:.0f} s")
        yield


def _clients(config: Config, paths: Sequence[str], ready: Event, stop: Event) -> None:
    """Clients that take turns in one process, at a steady rate."""
    rows = record_rows(config, 500)
    num_values = acting.num_acting_values(build.network_of(config))
    limits = ParamsLimits(num_values, Counters(10**9, 10**9))
    with contextlib.ExitStack() as stack:
        addresses = [f"unix:{path}" for path in paths]
        pullers = [ParamsPuller(reverb.Client(address), limits=limits) for address in addresses]
        for puller in pullers:
            stack.callback(puller.close)
            puller.wait_first(_START_SECONDS)
        writers = [
            stack.enter_context(
                ExperienceWriter(
                    reverb.Client(address),
                    item_layout(config),
                    num_streams=_GAMES,
                    should_stop=stop.is_set,
                )
            )
            for address in addresses
        ]
        plays = [[increments(config, rows) for _ in range(_GAMES)] for _ in paths]
        ready.set()
        due = time.monotonic()
        while not stop.is_set():
            for writer, games in zip(writers, plays, strict=True):
                for game, play in enumerate(games):
                    writer.write(game, *next(play))
                due += _GAMES / _INSERTS_PER_SECOND
                stop.wait(max(0.0, due - time.monotonic()))


def _gate_over_server(gated: _Gated) -> float:
    """Core time of the gate over that of the server, for the same inserts and pulls."""
    before = core_seconds(gated.gate), gated.server.core_seconds()
    time.sleep(_WATCH_SECONDS)
    gate, server = core_seconds(gated.gate), gated.server.core_seconds()
    return (gate - before[0]) / (server - before[1])


def _actor_throughput(config: Config, gated: _Gated) -> float:
    """Steps of an actor through the gate over those of the same actor without one."""
    with tempfile.TemporaryDirectory() as folder:
        RunDir(pathlib.Path(folder)).create(config)
        addresses = (gated.server.address, f"unix:{gated.tunnel}")
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.gate_speed", folder, *addresses],
            env=node_environment("actor"),
            stdout=subprocess.PIPE,
            timeout=_START_SECONDS,
            check=True,
        )
    return float(done.stdout.splitlines()[-1])


def compare_actors(config: Config, direct: str, through_gate: str) -> float:
    """Two actors in turns, with a writer each; in a process with the threads of an actor."""
    with contextlib.ExitStack() as stack:
        actors = {}
        for name, address in (("direct", direct), ("through gate", through_gate)):
            writer = ExperienceWriter(
                reverb.Client(address),
                item_layout(config),
                num_streams=config.actor.envs_per_actor,
                should_stop=lambda: False,
            )
            actors[name] = make_random_actor(config, stack.enter_context(writer)).step
        costs: dict[str, Cost] = compare(actors, calls=_CALLS, rounds=_ROUNDS)
    return costs["direct"].wall_ms / costs["through gate"].wall_ms


def main(argv: list[str]) -> None:
    """Prints the figures; with arguments, measures an actor as `_actor_throughput` asks."""
    if len(argv) > 1:
        _, folder, direct, through_gate = argv
        print(compare_actors(RunDir(pathlib.Path(folder)).load_config(), direct, through_gate))
        return
    for clients in (1, 64):
        print(json.dumps(measure_gate(PRESETS["cpu"], clients=clients)._asdict()), flush=True)


if __name__ == "__main__":
    move_to_own_network()
    main(sys.argv)
