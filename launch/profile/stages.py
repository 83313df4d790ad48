"""Each stage of the pipeline alone, and the bare limit it could reach at best.

Costs are in milliseconds of wall clock, best of several rounds; a stage and its limit take turns.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import reverb

from actors.n_step import Increment
from actors.observation import OBSERVATION_SHAPE
from launch import build
from launch.config import Config
from launch.nodes.learner import make_streams
from launch.nodes.tables import item_layout
from launch.profile.bare_limits import BareWriter, bare_draw, bare_emulator
from launch.profile.recorded_play import increments, record_rows
from launch.profile.replay_process import ReplayProcess, replay_process
from launch.profile.resident_batches import resident_batches
from launch.profile.timing import ROUNDS, Cost, compare
from learner import acting
from reverb_server.params import ParamsPublisher, ParamsPuller
from reverb_server.params_check import Counters, ParamsLimits
from reverb_server.writer import ExperienceWriter

_FILL_STEPS = 4000
_BYTES_STEPS = 8000
_PULL_SECONDS = 30.0


class Stage(NamedTuple):
    """What one stage costs."""

    name: str
    per: str  # agent step, batch, update or version
    wall_ms: float
    bare_ms: float
    bare: str  # what the limit is


class Stages(NamedTuple):
    """All of them, the update on resident data, and the memory of one step in replay."""

    stages: list[Stage]
    bare_update: Cost
    replay_bytes_per_step: float


def measure_stages(config: Config, *, rounds: int = ROUNDS) -> Stages:
    """Runs every stage once; takes about half a minute. Its process takes the learner's device."""
    build.prepare_learner_process(config)
    found = [environment_stage(config, rounds=rounds), inference_stage(config, rounds=rounds)]
    with replay_process(config) as server:
        found.append(insert_stage(config, server, rounds=rounds))
        found.append(sample_stage(config, server, rounds=rounds))
        found += params_stages(config, server, rounds=rounds)
    update, bare_update = update_stage(config, rounds=rounds)
    return Stages([*found, update], bare_update, measure_replay_bytes(config))


def environment_stage(config: Config, *, rounds: int = ROUNDS) -> Stage:
    """A step of the batched environment against the emulator's own `act`."""
    envs = config.actor.envs_per_actor
    environment = build.make_environment(config, num_envs=envs, seed=1, training=True)
    rng = np.random.default_rng(0)
    environment.reset()
    ale = bare_emulator(config)
    actions = ale.getMinimalActionSet()

    def step() -> None:
        environment.step(rng.integers(0, environment.num_actions, envs))

    def act() -> None:
        for _ in range(envs * config.environment.action_repeat):
            ale.act(actions[rng.integers(len(actions))])
            if ale.game_over():
                ale.reset_game()

    costs = compare({"step": step, "act": act}, calls=max(400 // envs, 10), rounds=rounds)
    environment.close()
    return Stage(
        "environment",
        "agent step",
        costs["step"].wall_ms / envs,
        costs["act"].wall_ms / envs,
        f"{config.environment.action_repeat} frames of the bare emulator, no screen",
    )


def inference_stage(config: Config, *, rounds: int = ROUNDS) -> Stage:
    """Greedy actions for all games of an actor, from host memory and back."""
    envs = config.actor.envs_per_actor
    greedy, resident = make_inference(config)
    costs = compare({"ours": greedy, "bare": resident}, calls=50, rounds=rounds)
    return Stage(
        "inference",
        "agent step",
        costs["ours"].wall_ms / envs,
        costs["bare"].wall_ms / envs,
        "the jitted forward pass on resident data",
    )


def make_inference(config: Config) -> tuple[Callable[[], object], Callable[[], object]]:
    """The actor's call for one step of all its games, and the bare forward pass."""
    network = build.network_of(config)
    params = acting.make_unflatten(network)(np.zeros(acting.num_acting_values(network), np.float32))
    shape = (config.actor.envs_per_actor, *OBSERVATION_SHAPE)
    stacks = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    choose = acting.make_greedy(network)
    forward = jax.jit(network.advantage)
    on_device = jax.device_put((params, stacks))
    return (
        lambda: choose(params, stacks),
        lambda: jax.block_until_ready(forward(*on_device)),
    )


def insert_stage(config: Config, server: ReplayProcess, *, rounds: int = ROUNDS) -> Stage:
    """n-step windows and inserts against Reverb alone."""
    rows = record_rows(config)
    with writing(config, server.address) as write:
        play = increments(config, rows)
        bare = BareWriter(config, server.address, rows[0])
        costs = compare({"ours": lambda: write(next(play)), "bare": bare}, calls=500, rounds=rounds)
        bare.close()
    return Stage(
        "n-step and insert",
        "agent step",
        costs["ours"].wall_ms,
        costs["bare"].wall_ms,
        "Reverb's writer alone, one frame and its part of an item",
    )


def measure_replay_bytes(config: Config) -> float:
    """What an agent step of real frames adds to the server's memory."""
    rows = record_rows(config)
    with replay_process(config) as server, writing(config, server.address) as write:
        play = increments(config, rows)
        for _ in range(_FILL_STEPS):  # buffers of the server's own are made now
            write(next(play))
        before = server.resident_bytes()
        for _ in range(_BYTES_STEPS):
            write(next(play))
        return (server.resident_bytes() - before) / _BYTES_STEPS


def sample_stage(config: Config, server: ReplayProcess, *, rounds: int = ROUNDS) -> Stage:
    """A batch from the server to the device against Reverb's samples alone."""
    draw = make_draw(config, server.address)
    bare = bare_draw(config, server.address)
    costs = compare({"ours": draw, "bare": bare}, calls=30, rounds=rounds)
    batches = config.learner.updates_per_dispatch
    return Stage(
        "sample, cut, transfer",
        "batch",
        costs["ours"].over(batches).wall_ms,
        costs["bare"].over(batches).wall_ms,
        "Reverb's dataset alone, left in TensorFlow",
    )


def make_draw(config: Config, address: str) -> Callable[[], object]:
    """The learner's whole sampling path: the batches of one dispatch, on the device."""
    stream, *_ = make_streams(config, address)

    def draw() -> None:
        batch = stream()
        assert batch is not None  # the table is full and never holds back
        jax.block_until_ready((batch.transition, batch.weights))

    return draw


def update_stage(config: Config, *, rounds: int = ROUNDS) -> tuple[Stage, Cost]:
    """An update on a batch from host memory against one on resident data, and that one's cost."""
    state, update = build.make_learner(config)
    resident = resident_batches(config)
    host = jax.device_get(resident)
    held = {"state": state}

    def run(batches: list[Any], calls: Iterator[int]) -> None:
        batch, weights = jax.device_put(batches[next(calls) % len(batches)])
        held["state"], _ = jax.block_until_ready(update(held["state"], batch, weights))

    costs = compare(
        {
            "host": functools.partial(run, host, iter(range(10**9))),
            "resident": functools.partial(run, resident, iter(range(10**9))),
        },
        calls=10,
        rounds=rounds,
    )
    host_cost, bare = (
        costs[name].over(config.learner.updates_per_dispatch) for name in ("host", "resident")
    )
    stage = Stage(
        "update", "update", host_cost.wall_ms, bare.wall_ms, "the jitted update on resident data"
    )
    return stage, bare


def params_stages(config: Config, server: ReplayProcess, *, rounds: int = ROUNDS) -> list[Stage]:
    """What publishing takes from the learner, and how soon an actor has the values."""
    state, _ = build.make_learner(config)
    flatten = jax.jit(acting.flatten_acting)
    values = np.asarray(flatten(state.params))
    client = reverb.Client(server.address)
    with contextlib.closing(ParamsPublisher(client)) as publisher:
        versions = iter(range(1, 10**9))

        def publish() -> None:
            flat = flatten(state.params)
            publisher.publish(
                lambda: np.asarray(flat), version=next(versions), steps=0, finished=False
            )

        costs = compare(
            {"publish": publish, "copy": lambda: values.copy()}, calls=20, rounds=rounds
        )
        pull = _pull_ms(client, values.size, rounds)
    copy = "one copy of the values in memory"
    return [
        Stage(
            "publish (learner)", "version", costs["publish"].wall_ms, costs["copy"].wall_ms, copy
        ),
        Stage("pull (actor)", "version", pull, costs["copy"].wall_ms, copy),
    ]


def _pull_ms(client: reverb.Client, num_values: int, rounds: int) -> float:
    """From a new puller's start to its first values."""

    def pull() -> None:
        puller = ParamsPuller(
            client, limits=ParamsLimits(num_values, Counters(10**9, 10**9)), poll_seconds=0.01
        )
        with contextlib.closing(puller):
            if puller.wait_first(_PULL_SECONDS) is None:
                raise TimeoutError(f"no parameters within {_PULL_SECONDS:.0f} s")

    return compare({"pull": pull}, calls=1, rounds=rounds)["pull"].wall_ms


@contextlib.contextmanager
def writing(config: Config, address: str) -> Iterator[Callable[[Increment], None]]:
    """One stream into a server's replay table."""
    with ExperienceWriter(
        reverb.Client(address),
        item_layout(config),
        num_streams=1,
        should_stop=lambda: False,
    ) as writer:
        yield lambda increment: writer.write(0, *increment)
