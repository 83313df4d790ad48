"""How many hosts a run needs, and what holds it back: arithmetic on measured costs.

Loads are shares of what a part can do: a run reaches the rate at which the first of them is 1. On
one host everybody shares its cores. With more, the first host has replay, the learner, the
evaluator and the monitor, and the others play. Evaluations are left out: how long they take
depends on what was learned.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from launch.config import Config
from launch.errors import InputError
from launch.layout import NodeName
from launch.memory_need import memory_need
from launch.profile.timing import Cost
from launch.replay import sample_streams

# Processes that wait for each other do not keep all cores busy: 1.8 of 2 in whole runs.
_USABLE = 0.9
_OTHERS_CORES = 0.05  # monitor, supervisor, and an evaluator between two evaluations
_MOST_UPDATES = 1e7  # a second; no run reaches it

# Parts that saturate, and what to do about each.
UPDATE, STREAMS, SERIAL, CORES, NETWORK, ACTORS, ACTOR_CORES = (
    "the update",
    "the streams that sample",
    "what of sampling one thread does at a time",
    "the cores of the learner's host",
    "the network of the learner's host",
    "the actors",
    "the cores of the actors' hosts",
)
_FIXED = (UPDATE, STREAMS, SERIAL, CORES, NETWORK)  # whatever the number of actors' hosts
_WAY_OUT = {
    UPDATE: "plan fewer updates/s, or a quicker device (--update-ms)",
    STREAMS: "raise --sample-streams, or plan fewer updates/s",
    SERIAL: "plan fewer updates/s, or more of them a call (--updates-per-dispatch)",
    CORES: "plan fewer updates/s, or larger hosts (--cores-per-host)",
    NETWORK: "raise --publish-period-updates or --gbit-per-second",
    ACTORS: "add actors (--actors)",
    ACTOR_CORES: "add hosts (--hosts)",
}


class Costs(NamedTuple):
    """What the parts of a run cost on one host; core time is that of all threads."""

    step: Cost  # all an actor does for an agent step
    insert_server_core_ms: float  # a step
    insert_bytes: float
    sample: Cost  # a batch, in the learner's process, by a single stream
    sample_serial_ms: float  # of it, what only one thread can do at a time
    sample_server_core_ms: float
    sample_bytes: float
    pull_core_ms: float  # a version, in an actor
    pull_server_core_ms: float
    pull_bytes: float
    polls_per_second: float  # how often an actor looks for a version
    publish_ms: float  # a version, in the learner's loop
    update: Cost  # on an accelerator it takes no core
    replay_bytes_per_step: float


class Hosts(NamedTuple):
    """Where a run is to take place."""

    hosts: int
    cores_per_host: int
    gbit_per_second: float  # of the network of one host


class Plan(NamedTuple):
    """A run at some rate: what it takes, and how long."""

    updates_per_second: float
    steps_per_second: float
    frames_per_second: float
    hosts: int
    cores_per_host: int
    actors: int
    actor_cores: float
    sampling_cores: float
    replay_cores: float
    update_cores: float
    learner_host_bytes: float  # memory
    actor_host_bytes: float  # memory of each of the others; of the actors, on a single host
    network_bytes_per_second: float  # between hosts
    replay_to_learner_bytes_per_second: float  # within the learner's host
    run_hours: float
    runs: int
    all_runs_hours: float  # one after the other
    host_hours: float
    saturates_first: str
    saturates_at_updates_per_second: float


class _Use(NamedTuple):
    """What a run uses, per second, at some rate."""

    steps: float
    actor_cores: float
    sampling_cores: float
    replay_cores: float
    update_cores: float
    network_bytes: float

    @property
    def learner_host_cores(self) -> float:
        return self.sampling_cores + self.replay_cores + self.update_cores + _OTHERS_CORES


def plan_for(
    config: Config, costs: Costs, hosts: Hosts, *, updates_per_second: float, runs: int = 1
) -> Plan:
    """The actors and hosts for a rate; refuses one that no number of them reaches.

    `hosts.hosts` is not asked for here, but found.
    """
    steps = updates_per_second * _steps_per_update(config)
    actors = max(math.ceil(steps * costs.step.wall_ms / (1e3 * _USABLE)), 1)
    use = _use(config, costs, actors, updates_per_second)
    room = hosts.cores_per_host * _USABLE
    number = 1
    if use.learner_host_cores + use.actor_cores > room:
        number = 1 + math.ceil(use.actor_cores / room)
    hosts = hosts._replace(hosts=number)
    # Actors and their hosts were chosen to be enough; the rest is as it is.
    loads = _loads(config, costs, hosts, actors, updates_per_second)
    for part in _FIXED:
        if loads[part] > 1.0:
            most = _limit(config, costs, hosts, actors, part)
            raise InputError(
                f"updates_per_second={updates_per_second:g} cannot be reached: {part} "
                f"would be at {loads[part]:.0%} of what it can do ({most:,.0f} updates/s); "
                f"{_WAY_OUT[part]}"
            )
    found = _describe(config, costs, hosts, actors, updates_per_second, runs)
    # More actors are to be had; what is named is what they would run into.
    first = max(_FIXED, key=lambda part: loads[part])
    return found._replace(
        saturates_first=first,
        saturates_at_updates_per_second=_limit(config, costs, hosts, actors, first),
    )


def predict(config: Config, costs: Costs, hosts: Hosts, *, runs: int = 1) -> Plan:
    """The rate that the config's actors reach on given hosts."""
    actors = config.actor.actors
    rate = _saturation(lambda rate: max(_loads(config, costs, hosts, actors, rate).values()))
    return _describe(config, costs, hosts, actors, rate, runs)


def sentence(plan: Plan) -> str:
    """The plan in one sentence."""
    where = f"one host of {plan.cores_per_host} cores"
    if plan.hosts > 1:
        where = f"{plan.hosts} hosts of {plan.cores_per_host} cores, one of them for the learner"
    took = f"a run takes {plan.run_hours:,.1f} h"
    if plan.runs > 1:
        took += (
            f", all {plan.runs:,} of them {plan.all_runs_hours:,.0f} h one after the other "
            f"({plan.host_hours:,.0f} host hours)"
        )
    return (
        f"{plan.updates_per_second:,.0f} updates/s with {plan.actors:,} actors on {where}: {took}; "
        f"first to saturate is {plan.saturates_first}, at "
        f"{plan.saturates_at_updates_per_second:,.0f} updates/s: to go beyond, "
        f"{_WAY_OUT[plan.saturates_first]}"
    )


def _describe(
    config: Config, costs: Costs, hosts: Hosts, actors: int, rate: float, runs: int
) -> Plan:
    use = _use(config, costs, actors, rate)
    loads = _loads(config, costs, hosts, actors, rate)
    first = max(loads, key=lambda part: loads[part])
    frames_per_second = use.steps * config.environment.action_repeat
    run_hours = config.frames / frames_per_second / 3600.0
    playing_hosts = max(hosts.hosts - 1, 1)
    return Plan(
        updates_per_second=rate,
        steps_per_second=use.steps,
        frames_per_second=frames_per_second,
        hosts=hosts.hosts,
        cores_per_host=hosts.cores_per_host,
        actors=actors,
        actor_cores=use.actor_cores,
        sampling_cores=use.sampling_cores,
        replay_cores=use.replay_cores,
        update_cores=use.update_cores,
        learner_host_bytes=_learner_host_bytes(config, costs),
        actor_host_bytes=_actor_bytes(config, math.ceil(actors / playing_hosts)),
        network_bytes_per_second=use.network_bytes if hosts.hosts > 1 else 0.0,
        replay_to_learner_bytes_per_second=rate * costs.sample_bytes,
        run_hours=run_hours,
        runs=runs,
        all_runs_hours=runs * run_hours,
        host_hours=runs * run_hours * hosts.hosts,
        saturates_first=first,
        saturates_at_updates_per_second=_limit(config, costs, hosts, actors, first),
    )


def _steps_per_update(config: Config) -> float:
    return config.learner.batch_size / config.replay.samples_per_insert


def _use(config: Config, costs: Costs, actors: int, rate: float) -> _Use:
    steps = rate * _steps_per_update(config)
    versions = rate / config.learner.publish_period_updates
    pulls = actors * min(versions, costs.polls_per_second)
    return _Use(
        steps=steps,
        actor_cores=(steps * costs.step.core_ms + pulls * costs.pull_core_ms) / 1e3,
        sampling_cores=rate * costs.sample.core_ms / 1e3,
        replay_cores=(
            rate * costs.sample_server_core_ms
            + steps * costs.insert_server_core_ms
            + pulls * costs.pull_server_core_ms
        )
        / 1e3,
        update_cores=rate * costs.update.core_ms / 1e3,
        network_bytes=steps * costs.insert_bytes + pulls * costs.pull_bytes,
    )


def _loads(
    config: Config, costs: Costs, hosts: Hosts, actors: int, rate: float
) -> dict[str, float]:
    """Share of what it can do, for each part, at some rate."""
    use = _use(config, costs, actors, rate)
    room = hosts.cores_per_host * _USABLE
    alone = hosts.hosts == 1
    per_update_ms = costs.update.wall_ms + costs.publish_ms / config.learner.publish_period_updates
    actor_cores_here = use.actor_cores if alone else 0.0
    # Its threads run on all cores at once, and each core gives them the time that others leave.
    beside = use.learner_host_cores - use.update_cores + actor_cores_here
    taken = beside / hosts.cores_per_host if costs.update.core_ms > 0.0 else 0.0
    loads = {
        UPDATE: rate * per_update_ms / 1e3 + taken,
        STREAMS: rate * costs.sample.wall_ms / 1e3 / sample_streams(config, hosts.cores_per_host),
        SERIAL: rate * costs.sample_serial_ms / 1e3,
        CORES: (use.learner_host_cores + actor_cores_here) / room,
        NETWORK: 0.0 if alone else use.network_bytes * 8 / (hosts.gbit_per_second * 1e9),
        ACTORS: use.steps * costs.step.wall_ms / 1e3 / actors,
    }
    if not alone:
        loads[ACTOR_CORES] = use.actor_cores / (room * (hosts.hosts - 1))
    return loads


def _limit(config: Config, costs: Costs, hosts: Hosts, actors: int, part: str) -> float:
    """The rate at which a part can do no more."""
    return _saturation(lambda rate: _loads(config, costs, hosts, actors, rate)[part])


def _saturation(load: Callable[[float], float]) -> float:
    """The rate at which a load, which grows with it, becomes 1."""
    low, high = 0.0, _MOST_UPDATES
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if load(middle) < 1.0 else (low, middle)
    return low


def _learner_host_bytes(config: Config, costs: Costs) -> float:
    names = [NodeName(role, 0) for role in ("replay", "learner", "evaluator", "monitor")]
    table = config.replay.replay_capacity_steps * costs.replay_bytes_per_step
    return memory_need(config, names).others + table


def _actor_bytes(config: Config, actors: int) -> float:
    return memory_need(config, [NodeName("actor", index) for index in range(actors)]).total


def as_json(plan: Plan, costs: Costs) -> dict[str, Any]:
    """The plan and the costs behind it as plain dictionaries."""
    nested = {name: getattr(costs, name)._asdict() for name in ("step", "sample", "update")}
    return {
        "plan": plan._asdict(),
        "sentence": sentence(plan),
        "costs": {**costs._asdict(), **nested},
    }
