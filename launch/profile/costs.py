"""Measures what a plan is made of, on this host: each part against a real Reverb server."""

import itertools
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
import reverb

from launch import build
from launch.config import Config
from launch.profile.actor_speed import measure_actor
from launch.profile.plan import Costs
from launch.profile.recorded_play import increments, record_rows
from launch.profile.replay_process import ReplayProcess, replay_process
from launch.profile.serial_sampling import serial_core_ms
from launch.profile.stages import make_draw, measure_replay_bytes, update_stage, writing
from launch.profile.timing import Cost, compare
from learner import acting
from reverb_server import tables
from reverb_server.params import POLL_SECONDS, ParamsPublisher

_INSERTS, _DRAWS, _PULLS = 2000, 60, 60
_ROUNDS = 3
_NETWORK = pathlib.Path("/proc/net/dev")


class _Spent(NamedTuple):
    """What one call of something took, here and in the server."""

    wall_ms: float
    core_ms: float
    server_core_ms: float
    network_bytes: float


def measure_costs(
    config: Config,
    report: Callable[[str], None] = lambda name: None,
    *,
    step: Cost | None = None,
    update_ms: float | None = None,
) -> Costs:
    """Takes about a minute; less with an actor's `step` that is known.

    An update of `update_ms`, if given, is on a device and takes no core.
    """
    if step is None:
        report("actor")
        step = measure_actor(config).step
    with replay_process(config) as server:
        report("insert")
        insert = _insert(config, server)
        report("sample")
        sample = _over(_sample(config, server), config.learner.updates_per_dispatch)
        serial_ms = serial_core_ms(config)
        report("publish and pull")
        publish_ms, pull = _publish_and_pull(config, server)
    report("replay memory")
    bytes_per_step = measure_replay_bytes(config)
    if update_ms is None:
        report("update")
        _, update = update_stage(config)
    else:
        update = Cost(update_ms, 0.0)
    return Costs(
        step=step,
        insert_server_core_ms=insert.server_core_ms,
        insert_bytes=insert.network_bytes,
        sample=Cost(sample.wall_ms, sample.core_ms),
        sample_serial_ms=serial_ms,
        sample_server_core_ms=sample.server_core_ms,
        sample_bytes=sample.network_bytes,
        pull_core_ms=pull.core_ms,
        pull_server_core_ms=pull.server_core_ms,
        pull_bytes=pull.network_bytes,
        polls_per_second=1.0 / POLL_SECONDS,
        publish_ms=publish_ms,
        update=update,
        replay_bytes_per_step=bytes_per_step,
    )


def _insert(config: Config, server: ReplayProcess) -> _Spent:
    with writing(config, server.address) as write:
        play = increments(config, record_rows(config))
        return _spend(server, lambda: write(next(play)), _INSERTS)


def _sample(config: Config, server: ReplayProcess) -> _Spent:
    return _spend(server, make_draw(config, server.address), _DRAWS)


def _publish_and_pull(config: Config, server: ReplayProcess) -> tuple[float, _Spent]:
    """Milliseconds of the learner's loop for a version, and what a pull of it costs."""
    client = reverb.Client(server.address)
    state, _ = build.make_learner(config)
    flatten = jax.jit(acting.flatten_acting)
    publisher = ParamsPublisher(client)
    versions = itertools.count(1)

    def publish() -> None:
        flat = flatten(state.params)
        publisher.publish(lambda: np.asarray(flat), version=next(versions), steps=0, finished=False)

    publish_ms = compare({"publish": publish}, calls=20)["publish"].wall_ms
    publisher.close()

    def pull() -> None:
        next(iter(client.sample(tables.PARAMS, emit_timesteps=False)))

    return publish_ms, _spend(server, pull, _PULLS)


def _spend(server: ReplayProcess, call: Callable[[], object], calls: int) -> _Spent:
    """The least of several rounds, of each figure: what disturbs only adds."""
    call()
    rounds = [_one_round(server, call, calls) for _ in range(_ROUNDS)]
    return _Spent(*map(min, zip(*rounds, strict=True)))


def _one_round(server: ReplayProcess, call: Callable[[], object], calls: int) -> _Spent:
    def clocks() -> Iterator[float]:
        yield from (time.perf_counter(), time.process_time())
        yield from (server.core_seconds(), _loopback_bytes())

    before = list(clocks())
    for _ in range(calls):
        call()
    wall, core, served, sent = (
        (now - then) / calls for now, then in zip(clocks(), before, strict=True)
    )
    return _Spent(1e3 * wall, 1e3 * core, 1e3 * served, sent)


def _over(spent: _Spent, parts: int) -> _Spent:
    return _Spent(*(figure / parts for figure in spent))


def _loopback_bytes() -> int:
    """Bytes that this machine has sent to itself; those of others count too."""
    line = next(
        line for line in _NETWORK.read_text().splitlines() if line.strip().startswith("lo:")
    )
    return int(line.split(":")[1].split()[0])
