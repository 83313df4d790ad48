"""The actor node: plays with the newest parameters, writes experience to Reverb."""

from typing import Any

import launchpad as lp
import reverb

from actors.loop import ActingParams, ActorEdges, run_actor
from launch import build, heartbeat
from launch.config import Config
from launch.heartbeat import Phase
from launch.nodes.acting_heartbeat import heard
from launch.nodes.limits import params_limits
from launch.nodes.tables import item_layout
from launch.seeds import environment_seed, node_seed
from learner import acting
from learner.networks import Network
from reverb_server import telemetry
from reverb_server.params import ParamsPuller
from reverb_server.writer import ExperienceWriter


def run_actor_node(config: Config, index: int, client: reverb.Client) -> None:
    """Plays until the program stops."""
    stop = lp.stop_event()
    heart = heartbeat.of_this_process("actor")
    heart.beat(Phase.STARTING)
    seeds = node_seed(config, "actor", index)
    network = build.network_of(config)
    environment = build.make_environment(
        config,
        num_envs=config.actor.envs_per_actor,
        seed=environment_seed(seeds),
        training=True,
    )
    puller = ParamsPuller(
        client,
        limits=params_limits(config, network),
        stale_seconds=config.actor.stale_params_seconds,
    )
    report = telemetry.TelemetryWriter(reverb.Client(client.server_address), f"actor/{index}")
    while puller.wait_first(1.0) is None:
        heart.beat(Phase.WAITING_FOR_PARAMETERS)
        if stop.is_set():
            return

    def held_back() -> bool:
        """Asked by the writer again and again while replay takes nothing."""
        heart.beat(Phase.WAITING_FOR_REPLAY)
        return stop.is_set()

    with ExperienceWriter(
        client,
        item_layout(config),
        num_streams=environment.num_envs,
        should_stop=held_back,
        timeout_seconds=config.actor.stale_params_seconds,
    ) as writer:
        edges = ActorEdges(
            get_params=_NewestParams(config, network, puller),
            greedy_actions=heard(heart, Phase.PLAYING, acting.make_greedy(network)),
            write=lambda game, increment: writer.write(game, *increment),
            waited_seconds=lambda: writer.waited_seconds,
            report=report,
            should_stop=stop.is_set,
        )
        actor = build.make_actor(config, index, environment, edges, seeds, pipeline_depth=1)
        run_actor(actor, edges, report_seconds=config.report_seconds)
    puller.close()
    report.close()
    environment.close()


class _NewestParams:
    """What a puller has, ready to act with: unflattened once per version."""

    def __init__(self, config: Config, network: Network, puller: ParamsPuller):
        self._config, self._puller = config, puller
        self._unflatten = acting.make_unflatten(network)
        self._version: int | None = None
        self._params: Any = None

    def __call__(self) -> ActingParams:
        newest = self._puller.get()
        assert newest is not None  # the loop starts after the first version arrived
        published = newest.params
        if published.version != self._version:
            self._version, self._params = published.version, self._unflatten(published.values)
        frames = self._config.frames_of(published.steps)
        return ActingParams(self._params, published.version, frames, newest.age_seconds)
