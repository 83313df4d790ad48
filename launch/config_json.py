"""A config as JSON: as run directories hold it, of this version and of earlier ones.

The file may be damaged, or a stranger's: whatever is read has the kind, the pattern and the bounds
that stand beside its field.
"""

import dataclasses
import logging
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from launch.bounds import Bounds
from launch.config import Config
from launch.errors import InputError
from report.config_fields import RENAMED_FIELDS


def to_json(config: Config) -> dict[str, Any]:
    """A config as plain nested dictionaries."""
    return dataclasses.asdict(config)


def from_json(stored: Mapping[str, Any]) -> Config:
    """The config that `to_json`, of this version or an earlier one, made into plain dictionaries.

    A field that is missing was added since and gets its default; renamed fields are read under
    their old names too. Unknown fields and values that do not fit are errors that name them.
    """
    return dataclass_from_json(Config, stored, "config")


def leaf_values(config: Config) -> dict[str, Any]:
    """All fields by their own name, which is unique: it is also the name of the flag."""
    leaves: dict[str, Any] = {}
    for name, value in to_json(config).items():
        leaves |= value if isinstance(value, dict) else {name: value}
    return leaves


def fields_that_differ(a: Config, b: Config) -> Iterator[tuple[str, Any, Any]]:
    """Names of fields with their two values, where they are not the same."""
    left, right = leaf_values(a), leaf_values(b)
    for name, value in left.items():
        if value != right[name]:
            yield name, value, right[name]


def dataclass_from_json(cls: Any, stored: Any, where: str) -> Any:
    """An instance of a dataclass from its fields, and those of the dataclasses in it.

    Raises ValueError, with the name of the field, for what has another kind or is out of bounds.
    """
    if not isinstance(stored, Mapping):
        raise ValueError(f"{where} is not a JSON object")
    stored = {RENAMED_FIELDS.get(name, name): value for name, value in stored.items()}
    hints = typing.get_type_hints(cls, include_extras=True)
    if unknown := sorted(set(stored) - set(hints)):
        raise ValueError(f"{where}: fields {', '.join(unknown)} are unknown to this version")
    values = {}
    for name, hint in hints.items():
        if dataclasses.is_dataclass(hint):
            values[name] = dataclass_from_json(hint, stored.get(name), f"{where}.{name}")
        elif name not in stored:
            logging.debug("%s has no %s: it gets its default", where, name)
        elif _fits(stored[name], hint):
            values[name] = stored[name]
        else:
            raise ValueError(f"{where}: {name}={stored[name]!r} is not of the right kind")
    _check_bounds(values, hints, where)
    required = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
    if missing := sorted(required - values.keys()):
        raise ValueError(f"{where} has no {', '.join(missing)}")
    return cls(**values)


def _check_bounds(values: Mapping[str, Any], hints: Mapping[str, Any], where: str) -> None:
    for name, value in values.items():
        for extra in getattr(hints[name], "__metadata__", ()):
            if isinstance(extra, Bounds):
                try:
                    extra.check(**{name: value})
                except InputError as error:
                    raise ValueError(f"{where}: {error}") from None


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON is of a field's type, and a text of its pattern."""
    if typing.get_origin(hint) is Annotated:
        kind, *metadata = typing.get_args(hint)
        patterns = [extra for extra in metadata if isinstance(extra, re.Pattern)]
        return _fits(value, kind) and all(
            value is None or pattern.fullmatch(value) for pattern in patterns
        )
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if hint is float:
        # A whole number may have any number of digits, which no float has.
        return isinstance(value, float) or (_fits(value, int) and abs(value) < 2**63)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
