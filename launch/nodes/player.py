"""What every node that plays is made of: games, the network, the newest parameters, telemetry."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import reverb

from actors.environment import AtariBatch
from launch import build, heartbeat
from launch.config import Config
from launch.heartbeat import Heartbeat, Phase
from launch.layout import NodeName
from launch.nodes.acting_heartbeat import Greedy, heard
from launch.nodes.limits import params_limits
from launch.seeds import environment_seed, node_seed
from learner import acting
from learner.networks import Network
from reverb_server.params import ParamsPuller
from reverb_server.telemetry import TelemetryWriter


class Parts(NamedTuple):
    """What a rehearsal has of its own."""

    make_environment: Callable[..., AtariBatch] = build.make_environment
    make_greedy: Callable[[Network], Greedy] = acting.make_greedy


REAL = Parts()


class Player(NamedTuple):
    """The parts of one node."""

    heart: Heartbeat
    seeds: np.random.SeedSequence
    environment: AtariBatch
    greedy: Greedy
    unflatten: Callable[[np.ndarray], Any]
    puller: ParamsPuller
    report: TelemetryWriter


@contextlib.contextmanager
def make_player(
    config: Config,
    client: reverb.Client,
    name: NodeName,
    *,
    reports_as: str,
    num_envs: int,
    training: bool,
    phase: Phase,
    parts: Parts = REAL,
) -> Iterator[Player]:
    """The parts of a node; `phase` is what its heartbeat calls a step."""
    heart = heartbeat.of_this_process(name.role)
    heart.beat(Phase.STARTING)
    seeds = node_seed(config, name.role, name.index)
    network = build.network_of(config)
    player = Player(
        heart=heart,
        seeds=seeds,
        environment=parts.make_environment(
            config, num_envs=num_envs, seed=environment_seed(seeds), training=training
        ),
        greedy=heard(heart, phase, parts.make_greedy(network)),
        unflatten=acting.make_unflatten(network),
        puller=ParamsPuller(
            client,
            limits=params_limits(config, network),
            stale_seconds=config.actor.stale_params_seconds,
        ),
        report=TelemetryWriter(reverb.Client(client.server_address), reports_as),
    )
    yield player
    # Not after an error: a server that is gone would only hold up the end of the process.
    player.puller.close()
    player.report.close()
    player.environment.close()
