"""What an actor's step costs over its emulator and its network alone."""

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

import numpy as np
import reverb
from ale_py.vector_env import AtariVectorEnv

from actors.loop import ActingParams, Actor, ActorEdges
from launch import build
from launch.config import Config
from launch.invocation import program_command
from launch.nodes.tables import item_layout
from launch.profile.replay_process import replay_process
from launch.profile.stages import make_inference
from launch.profile.timing import Cost, compare
from launch.run_dir import RunDir
from launch.supervise.nodes_on_host import node_environment
from learner import acting
from reverb_server.writer import ExperienceWriter

_SECONDS = 300.0
_CALLS = 25  # in a round


class ActorSpeed(NamedTuple):
    """Costs of one agent step."""

    step: Cost  # all an actor does
    bare: Cost  # emulator and network in turns, and nothing else
    emulator: Cost
    network: Cost

    @property
    def overhead(self) -> float:
        """Share of the actor's time that is neither emulator nor network."""
        return 1.0 - self.bare.wall_ms / self.step.wall_ms


def measure_actor(config: Config, *, rounds: int = 20) -> ActorSpeed:
    """Measures in a process with the threads of an actor, which are few."""
    with tempfile.TemporaryDirectory() as folder:
        RunDir(pathlib.Path(folder)).create(config)
        done = subprocess.run(
            program_command("launch.profile.actor_speed", folder, str(rounds)),
            env=node_environment("actor"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=True,
        )
    found = json.loads(done.stdout.splitlines()[-1])
    return ActorSpeed(**{name: Cost(*cost) for name, cost in found.items()})


def compare_actor(config: Config, *, rounds: int) -> ActorSpeed:
    """Plays with a real writer into a real server that never holds back."""
    envs = config.actor.envs_per_actor
    rng = np.random.default_rng(0)
    raw = AtariVectorEnv(
        config.environment.game, envs, num_threads=1, frameskip=config.environment.action_repeat
    )
    raw.reset(seed=1)
    num_actions = build.num_actions(config.environment.game, False)
    _, forward = make_inference(config)

    def emulate() -> None:
        raw.step(rng.integers(0, num_actions, envs))

    def bare() -> None:
        # In turns, as an actor does it: each finds its data pushed out of the cache by the other.
        emulate()
        forward()

    with (
        replay_process(config) as server,
        ExperienceWriter(
            reverb.Client(server.address),
            item_layout(config),
            num_streams=envs,
            should_stop=lambda: False,
        ) as writer,
    ):
        candidates = {
            "step": make_random_actor(config, writer).step,
            "bare": bare,
            "emulator": emulate,
            "network": forward,
        }
        costs = compare(candidates, calls=_CALLS, rounds=rounds)
    raw.close()
    return ActorSpeed(**{name: cost.over(envs) for name, cost in costs.items()})


def make_random_actor(config: Config, writer: ExperienceWriter) -> Actor:
    """An actor that plays at random and writes what it plays."""
    network = build.network_of(config)
    params = acting.make_unflatten(network)(np.zeros(acting.num_acting_values(network), np.float32))

    edges = ActorEdges(
        get_params=lambda: ActingParams(params, 1, 0, 0.0),
        greedy_actions=acting.make_greedy(network),
        write=lambda game, increment: writer.write(game, *increment),
        waited_seconds=lambda: writer.waited_seconds,
        report=lambda row: None,
        should_stop=lambda: False,
    )
    # Random actions, as the bare emulator gets: games then go on alike.
    config = dataclasses.replace(
        config, actor=dataclasses.replace(config.actor, final_epsilon=1.0, exploration="schedule")
    )
    environment = build.make_environment(
        config, num_envs=config.actor.envs_per_actor, seed=1, training=True
    )
    return build.make_actor(
        config, 0, environment, edges, np.random.SeedSequence(0), pipeline_depth=1
    )


def main(argv: list[str]) -> None:
    """Prints the costs as one line of JSON."""
    _, folder, rounds = argv
    config = RunDir(pathlib.Path(folder)).load_config()
    print(json.dumps(compare_actor(config, rounds=int(rounds))._asdict()))


if __name__ == "__main__":
    main(sys.argv)
