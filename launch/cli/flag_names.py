"""The names of a command's flags, from the dataclasses they are derived from."""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

import tyro


def flag_names(flags: Any) -> list[str]:
    """All flags, without their dashes: `learning-rate`."""
    return [name for name, _ in _named_fields(flags)]


def switch_names(flags: Any) -> set[str]:
    """Those that take no value, and have a `no-` form."""
    return {name for name, kind in _named_fields(flags) if kind is bool}


def _named_fields(flags: Any) -> Iterator[tuple[str, Any]]:
    hints = typing.get_type_hints(flags, include_extras=True)
    for field in dataclasses.fields(flags):
        hint = hints[field.name]
        extras = getattr(hint, "__metadata__", ())
        if dataclasses.is_dataclass(hint):
            yield from _named_fields(hint)
        elif tyro.conf.Positional not in extras:
            given = (getattr(extra, "name", None) for extra in extras)
            name = next((name for name in given if isinstance(name, str)), field.name)
            yield name.replace("_", "-"), typing.get_args(hint)[0] if extras else hint
