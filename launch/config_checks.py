"""Refuses configs that cannot work, before anything is started or written."""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import psutil

from actors.games import UnknownGameError, check_game
from launch import names
from launch.bounds import Bounds
from launch.config import Config
from launch.errors import InputError
from launch.replay import replay_bytes_estimate, replay_limit
from reverb_server.port import PortInUseError, check_port_free


def check_config(config: Config) -> None:
    """Raises InputError, in one line, for the first thing that cannot work."""
    for name, value, bounds in bounded_fields(config):
        bounds.check(**{name: value})
    _check_warmup(config)
    replay_limit(config)
    check_names(config)


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


def check_machine(config: Config) -> None:
    """This host, which is to hold replay, must have the memory and the port for it."""
    _check_memory(config)
    if config.replay.port:
        try:
            check_port_free(config.replay.port)
        except PortInUseError as error:
            raise InputError(str(error)) from None


def _check_memory(config: Config) -> None:
    needed, available = replay_bytes_estimate(config), psutil.virtual_memory().available
    if needed > available:
        raise InputError(
            f"replay_capacity_steps={config.replay.replay_capacity_steps} needs about "
            f"{needed / 2**30:.1f} GiB but {available / 2**30:.1f} GiB are free; "
            "lower --replay-capacity-steps"
        )


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
