"""Refuses configs that cannot work, before anything is started or written."""

import dataclasses
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from actors.games import UnknownGameError, check_game
from actors.n_step import shortest_truncated_steps
from launch import names
from launch.bounds import Bounds
from launch.config import Config
from launch.errors import InputError
from launch.layout import NodeName
from launch.machine.limits import available_bytes, usable_cores
from launch.memory_need import memory_need
from launch.replay import LEAST_STREAMS, replay_limit, sample_streams
from reverb_server.port import PortInUseError, check_port_free


def check_config(config: Config) -> None:
    """Raises InputError, in one line, for the first thing that cannot work."""
    for name, value, bounds in bounded_fields(config):
        bounds.check(**{name: value})
    _check_warmup(config)
    _check_noops(config)
    _check_episodes(config)
    replay_limit(config)
    check_names(config)


def check_serial(config: Config) -> None:
    """Refuses what a run in one process has not got: it samples alone, and resumes exactly."""
    if config.replay.prioritized:
        raise InputError("--serial samples uniformly; drop --prioritized")
    sticky = config.environment.sticky_actions
    if sticky:
        raise InputError(
            f"sticky_actions={sticky}: a serial run resumes exactly, and the emulator's draws for "
            "them cannot be put back; drop --serial or --sticky-actions"
        )


def bounded_fields(section: Any) -> Iterator[tuple[str, float | None, Bounds]]:
    """Every number of a config with the bounds that stand beside it, by name."""
    for name, hint in typing.get_type_hints(type(section), include_extras=True).items():
        value = getattr(section, name)
        if dataclasses.is_dataclass(value):
            yield from bounded_fields(value)
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, Bounds):
                yield name, value, extra


def check_names(config: Config) -> None:
    """The game, the algorithm and the network must be found, here and on every host of a run."""
    try:
        check_game(config.environment.game)
    except UnknownGameError as error:
        raise InputError(str(error)) from None
    names.find_loss(config.learner.algorithm)
    names.find_architecture(config.learner.network)


def check_machine(config: Config, names: Sequence[NodeName]) -> None:
    """This host must have the memory for these nodes, and the port for replay."""
    check_memory(config, names)
    _check_streams(config, names)
    if config.replay.port:
        try:
            check_port_free(config.replay.port)
        except PortInUseError as error:
            raise InputError(str(error)) from None


def check_memory(config: Config, names: Sequence[NodeName]) -> None:
    """Refuses nodes that together cannot fit into the memory of this host."""
    need, available = memory_need(config, names), available_bytes()
    if need.total > available:
        flag = "--replay-capacity-steps"
        if need.actors > need.replay:
            flag = (
                "--actors" if any(name.role == "learner" for name in names) else "--actors-per-host"
            )
        raise InputError(
            f"actors={_num_actors(names)} and "
            f"replay_capacity_steps={config.replay.replay_capacity_steps} need at least "
            f"{_gib(need.total)} on this host ({_gib(need.actors)} for actors, "
            f"{_gib(need.replay)} for replay) but {_gib(available)} are free; lower {flag}"
        )


def _check_streams(config: Config, names: Sequence[NodeName]) -> None:
    """Refuses more streams than the learner's host could ever serve at a time."""
    streams, most = sample_streams(config), max(usable_cores(), LEAST_STREAMS)
    if streams > most and any(name.role == "learner" for name in names):
        raise InputError(
            f"sample_streams={streams}: each takes about a core, and this host has "
            f"{usable_cores()}; --sample-streams can be {most} at most here"
        )


def _num_actors(names: Sequence[NodeName]) -> int:
    return sum(name.role == "actor" for name in names)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


def crowd_warning(names: Sequence[NodeName]) -> str | None:
    """What to know before starting more actors than this host has cores for."""
    actors, cores = _num_actors(names), usable_cores()
    if actors <= cores:
        return None
    share = "one core" if cores == 1 else f"{cores} cores"
    return f"actors={actors} share {share}: beyond one for each core, more of them play no faster"


def _check_warmup(config: Config) -> None:
    warmup, capacity = config.replay.warmup_steps, config.replay.replay_capacity_steps
    if capacity < warmup:
        raise InputError(
            f"replay_capacity_steps={capacity} is less than warmup_steps={warmup}: "
            "learning would never start"
        )
    if config.total_steps <= warmup:
        raise InputError(
            f"frames={config.frames} is {config.total_steps} agent steps, no more than "
            f"warmup_steps={warmup}: nothing would be learned"
        )


def _check_noops(config: Config) -> None:
    fewest, most = config.environment.min_noops, config.environment.max_noops
    if fewest > most:
        raise InputError(f"min_noops={fewest} must be at most max_noops={most}")
    frames = config.environment.max_episode_frames
    if fewest >= frames:
        raise InputError(
            f"min_noops={fewest} must be less than max_episode_frames={frames}: an episode would "
            "end before it starts"
        )


def _check_episodes(config: Config) -> None:
    environment = config.environment
    # On the safe side: no-ops at the start may count as steps of the episode.
    played = config.steps_of(environment.max_episode_frames) - environment.max_noops
    least = shortest_truncated_steps(config.learner.n_step, config.item_transitions)
    if least > 1 and played < least:
        raise InputError(
            f"max_episode_frames={environment.max_episode_frames} can cut an episode off before "
            f"{least} steps, which items of {config.item_transitions} transitions have no room "
            "for; raise it, or lower --updates-per-dispatch"
        )
