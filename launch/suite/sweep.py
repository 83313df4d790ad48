"""`--sweep NAME=VALUE,VALUE`: more axes of a suite's grid, each a setting with its values."""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from launch import names
from launch.config import Config
from launch.config_json import leaf_values
from launch.errors import InputError
from launch.nearest import did_you_mean
from report.config_fields import OPERATIONAL_FIELDS

# The grid has these axes already.
_OWN_FLAG = {"game": "--games", "algorithm": "--algorithms", "seed": "--seeds"}


class Axis(NamedTuple):
    """A setting, and the flags of `vantage train` for each of its values."""

    name: str
    flags: tuple[str, ...]


class Variant(NamedTuple):
    """One combination of the axes' values; without axes there is one, of no values."""

    text: str  # learning_rate=0.0003, gamma=0.99: for people
    label: str  # -learning_rate=0.0003-gamma=0.99: for names of folders
    args: tuple[str, ...]  # of `vantage train`
    config: Config


def axes_of(sweep: Sequence[str], args: Sequence[str]) -> list[Axis]:
    """The axes asked for; `args` are what every run gets, and must not set them too."""
    axes = [_axis(given) for given in sweep]
    for axis in axes:
        if sum(axis.name == other.name for other in axes) > 1:
            raise InputError(f"--sweep {axis.name} is given twice; write all its values in one")
        given = {arg.partition("=")[0].replace("_", "-") for arg in args}
        for flag in (_flag(axis.name), f"--no-{_flag(axis.name)[2:]}"):
            if flag in given:
                raise InputError(f"--sweep {axis.name} and {flag} exclude each other")
    return axes


def variants_of(
    axes: Sequence[Axis], args: Sequence[str], parse: Callable[[Sequence[str]], Config]
) -> list[Variant]:
    """All combinations, for runs that get `args` too; `parse` reads a command line of train."""
    variants = [
        _variant(axes, (*args, *flags), parse)
        for flags in itertools.product(*(axis.flags for axis in axes))
    ]
    for variant in variants:
        if sum(variant.label == other.label for other in variants) > 1:
            raise InputError(f"--sweep {variant.text}: each value is needed once")
    return variants


def _axis(given: str) -> Axis:
    name, equals, values = given.partition("=")
    name = name.strip().replace("-", "_")
    settings = leaf_values(Config())
    if not equals or not all(value.strip() for value in values.split(",")):
        raise InputError(f"--sweep '{given}' is not NAME=VALUE,VALUE, as learning_rate=1e-4,3e-4")
    if name in _OWN_FLAG:
        raise InputError(f"--sweep {name}: that axis is there already; use {_OWN_FLAG[name]}")
    if name not in settings:
        near = did_you_mean(name, list(settings)) or "settings are the flags of vantage train"
        raise InputError(f"--sweep '{name}' is no setting; {near}")
    if name in OPERATIONAL_FIELDS:
        raise InputError(
            f"--sweep {name}: runs that differ in it alone count as runs of the same; give it to "
            "all of them after a bare --"
        )
    texts = [value.strip() for value in values.split(",")]
    if isinstance(settings[name], bool):
        return Axis(name, tuple(_switch(name, text) for text in texts))
    return Axis(name, tuple(f"{_flag(name)}={text}" for text in texts))


def _switch(name: str, text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise InputError(f"--sweep {name}={text} must be true or false")
    return _flag(name) if text.lower() == "true" else f"--no-{_flag(name)[2:]}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _variant(
    axes: Sequence[Axis], args: tuple[str, ...], parse: Callable[[Sequence[str]], Config]
) -> Variant:
    config = parse(args)
    settings = leaf_values(config)
    parts = [f"{axis.name}={_text(settings[axis.name])}" for axis in axes]
    label = "".join(f"-{names.file_name(part)}" for part in parts)
    return Variant(", ".join(parts), label, args, config)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
