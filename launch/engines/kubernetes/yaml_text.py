"""Objects as YAML: as much of it as manifests need, for people to read."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

# What no reader of YAML takes for anything but a text.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS = frozenset({"y", "yes", "n", "no", "on", "off", "true", "false", "null", "nan", "inf"})


def yaml_text(objects: Sequence[Mapping[str, Any]]) -> str:
    """Documents, one for each object."""
    return "".join(f"---\n{_mapping(item, 0)}" for item in objects)


def _mapping(value: Mapping[str, Any], indent: int) -> str:
    return "".join(
        f"{' ' * indent}{_scalar(key)}:{_value(item, indent)}" for key, item in value.items()
    )


def _value(value: Any, indent: int) -> str:
    """What follows a key, up to the end of its last line."""
    if isinstance(value, Mapping) and value:
        return f"\n{_mapping(value, indent + 2)}"
    if isinstance(value, list) and value:
        return "\n" + "".join(_item(item, indent) for item in value)
    if isinstance(value, str) and _is_block(value):
        lines = "".join(f"{' ' * (indent + 2)}{line}\n" for line in value.splitlines())
        return f" |\n{lines}"
    return f" {_scalar(value)}\n"


def _item(item: Any, indent: int) -> str:
    """An item of a list; lists stand as deep as their key."""
    if isinstance(item, Mapping) and item:
        # The dash takes the place of the first key's indentation.
        return f"{' ' * indent}- {_mapping(item, indent + 2)[indent + 2 :]}"
    return f"{' ' * indent}- {_scalar(item)}\n"


def _is_block(text: str) -> bool:
    """Whether a text is lines that may stand as they are."""
    lines = text.split("\n")
    return (
        len(lines) > 2
        and not lines[-1]
        and bool(lines[0])
        and lines[0][0] != " "
        and all(line.isprintable() and line.strip() for line in lines[:-1])
    )


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # JSON is YAML too: numbers, truth values, empty collections, and texts in quotes.
    return json.dumps(value)
