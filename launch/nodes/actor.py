"""The actor node: plays with the newest parameters, writes experience to Reverb."""

import collections
import threading
from typing import Any

import launchpad as lp
import reverb

from actors.loop import ActingParams, ActorEdges, run_actor
from actors.n_step import Increment
from launch import build
from launch.config import Config
from launch.heartbeat import Phase
from launch.layout import NodeName
from launch.monitor.snapshot import NUM_RETURNS
from launch.nodes.player import REAL, Parts, Player, make_player
from launch.nodes.step_budget import Published, StepBudget
from launch.nodes.tables import item_layout
from report.counted import counted
from reverb_server.client import SERVER_AWAY, read_counts
from reverb_server.writer import ExperienceWriter

_HELD_BACK_SECONDS = 0.1  # between two looks whether the run has any steps left


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
        _play(config, index, client, player, stop)


def _play(
    config: Config, index: int, client: reverb.Client, player: Player, stop: threading.Event
) -> None:
    """Plays with the parameters that have arrived, and writes what the run has steps left for."""

    def held_back() -> bool:
        """Asked by the writer again and again while replay takes nothing."""
        player.heart.beat(Phase.WAITING_FOR_REPLAY)
        return stop.is_set()

    layout = item_layout(config)
    with ExperienceWriter(
        client,
        layout,
        num_streams=player.environment.num_envs,
        should_stop=held_back,
        timeout_seconds=config.actor.stale_params_seconds,
    ) as writer:
        budget = _make_budget(config, client, player, writer)

        def write(game: int, increment: Increment) -> None:
            while not budget.take(layout.steps_in(len(increment.items))):
                if held_back():
                    return
                stop.wait(_HELD_BACK_SECONDS)
            writer.write(game, *increment)

        edges = ActorEdges(
            get_params=_NewestParams(config, player),
            greedy_actions=player.greedy,
            write=write,
            waited_seconds=lambda: writer.waited_seconds,
            report=_Reports(player),
            should_stop=stop.is_set,
        )
        actor = build.make_actor(
            config, index, player.environment, edges, player.seeds, pipeline_depth=1
        )
        run_actor(actor, edges, report_seconds=config.report_seconds)


def _make_budget(
    config: Config, client: reverb.Client, player: Player, writer: ExperienceWriter
) -> StepBudget:
    layout = item_layout(config)

    def read_inserts() -> int | None:
        try:
            return read_counts(client, layout).inserts
        except SERVER_AWAY:
            return None  # the writer says so, if it lasts

    def newest() -> Published:
        snapshot = player.puller.get()
        assert snapshot is not None  # playing starts after the first version arrived
        return Published(snapshot.params.version, snapshot.params.steps)

    return StepBudget(
        total_steps=config.total_steps,
        num_actors=config.actor.actors,
        # What is under way, and the step that is being written.
        pending_steps=layout.steps_in(writer.max_pending_items + player.environment.num_envs),
        read_inserts=read_inserts,
        newest=newest,
        settle=writer.settle,
    )


class _Reports:
    """Telemetry, and the newest of it in words for the log."""

    def __init__(self, player: Player):
        self._player = player
        self._returns: collections.deque[float] = collections.deque(maxlen=NUM_RETURNS)

    def __call__(self, row: dict[str, Any]) -> None:
        self._player.report(row)
        if "episode_return" in row:
            self._returns.append(row["episode_return"])
            return
        remark = (
            f"{row['frames_per_second']:,.0f} frames/s, waits for replay "
            f"{row['insert_wait_fraction']:.0%}, parameters {row['params_age_seconds']:.1f} s old, "
            f"epsilon {row['epsilon']:.3f}"
        )
        if self._returns:
            mean = sum(self._returns) / len(self._returns)
            remark += f", return {mean:,.1f} in {counted(len(self._returns), 'episode')}"
        self._player.heart.remark(remark)


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
