"""The actor node: plays with the newest parameters, writes experience to Reverb."""

from typing import Any

import launchpad as lp
import reverb

from actors.loop import ActingParams, ActorEdges, run_actor
from launch import build
from launch.config import Config
from launch.heartbeat import Phase
from launch.layout import NodeName
from launch.nodes.player import REAL, Parts, Player, make_player
from launch.nodes.tables import item_layout
from reverb_server.writer import ExperienceWriter


def run_actor_node(config: Config, index: int, client: reverb.Client, parts: Parts = REAL) -> None:
    """Plays until the program stops."""
    stop = lp.stop_event()
    with make_player(
        config,
        client,
        NodeName("actor", index),
        reports_as=f"actor/{index}",
        num_envs=config.actor.envs_per_actor,
        training=True,
        phase=Phase.PLAYING,
        parts=parts,
    ) as player:
        while player.puller.wait_first(1.0) is None:
            player.heart.beat(Phase.WAITING_FOR_PARAMETERS)
            if stop.is_set():
                return

        def held_back() -> bool:
            """Asked by the writer again and again while replay takes nothing."""
            player.heart.beat(Phase.WAITING_FOR_REPLAY)
            return stop.is_set()

        with ExperienceWriter(
            client,
            item_layout(config),
            num_streams=player.environment.num_envs,
            should_stop=held_back,
            timeout_seconds=config.actor.stale_params_seconds,
        ) as writer:
            edges = ActorEdges(
                get_params=_NewestParams(config, player),
                greedy_actions=player.greedy,
                write=lambda game, increment: writer.write(game, *increment),
                waited_seconds=lambda: writer.waited_seconds,
                report=player.report,
                should_stop=stop.is_set,
            )
            actor = build.make_actor(
                config, index, player.environment, edges, player.seeds, pipeline_depth=1
            )
            run_actor(actor, edges, report_seconds=config.report_seconds)


class _NewestParams:
    """What a puller has, ready to act with: unflattened once per version."""

    def __init__(self, config: Config, player: Player):
        self._config, self._player = config, player
        self._version: int | None = None
        self._params: Any = None

    def __call__(self) -> ActingParams:
        newest = self._player.puller.get()
        assert newest is not None  # the loop starts after the first version arrived
        published = newest.params
        if published.version != self._version:
            self._version = published.version
            self._params = self._player.unflatten(published.values)
        frames = self._config.frames_of(published.steps)
        return ActingParams(self._params, published.version, frames, newest.age_seconds)
