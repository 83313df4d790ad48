"""The actor node: plays with the newest parameters, writes experience to Reverb."""

from collections.abc import Callable
from typing import Any

import launchpad as lp
import reverb

from actors.loop import ActingParams, ActorEdges, run_actor
from launch import build
from launch.config import Config
from launch.nodes.tables import item_layout
from launch.seeds import environment_seed, node_seed
from learner import acting
from reverb_server import telemetry
from reverb_server.params import ParamsPuller
from reverb_server.writer import ExperienceWriter


def run_actor_node(config: Config, index: int, client: reverb.Client) -> None:
    """Plays until the program stops."""
    stop = lp.stop_event()
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
        num_values=acting.num_acting_values(network),
        stale_seconds=config.actor.stale_params_seconds,
    )
    report = telemetry.TelemetryWriter(reverb.Client(client.server_address), f"actor/{index}")
    get_params = make_get_params(puller, network, config.frames_of)
    while puller.wait_first(1.0) is None:
        if stop.is_set():
            return
    with ExperienceWriter(
        client,
        item_layout(config),
        num_streams=environment.num_envs,
        should_stop=stop.is_set,
        timeout_seconds=config.actor.stale_params_seconds,
    ) as writer:
        edges = ActorEdges(
            get_params=get_params,
            greedy_actions=acting.make_greedy(network),
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


def make_get_params(
    puller: ParamsPuller, network: Any, frames_of: Callable[[int], int]
) -> Callable[[], ActingParams]:
    """Newest parameters, unflattened once per version."""
    unflatten = acting.make_unflatten(network)
    held: dict[str, Any] = {"version": None, "params": None}

    def get_params() -> ActingParams:
        snapshot = puller.get()
        assert snapshot is not None  # the loop starts after the first version arrived
        published = snapshot.params
        if published.version != held["version"]:
            held.update(version=published.version, params=unflatten(published.values))
        frames = frames_of(published.steps)
        return ActingParams(held["params"], published.version, frames, snapshot.age_seconds)

    return get_params
