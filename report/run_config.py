"""What a run's config.json says, for a report: of any version, and a stranger's too.

Here a name becomes one that can be shown, drawn and filed, and a number one that can be computed
with. Whoever takes them from here need not ask again.
"""

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from report.config_fields import RENAMED_FIELDS, USUAL_PROTOCOL
from report.json_file import read_json
from report.plain_text import plain

_MAX_NAME = 128
_MAX_FIELDS = 1000
_MAX_INTEGER = 2**62


class RunConfig(NamedTuple):
    """What was run."""

    game: str
    algorithm: str
    seed: int
    total_frames: int
    settings: Mapping[str, Any]  # all fields by name: numbers, short texts, None
    facts: Mapping[str, Any]  # versions, hardware and commit, as stored


class DamagedConfigError(ValueError):
    """A config.json that does not say what was run."""


def read_run_config(path: pathlib.Path) -> RunConfig:
    """Raises DamagedConfigError, in one line, where the file does not say what was run."""
    try:
        stored = read_json(path)
        config = stored["config"]
        # Whatever else is missing can be done without.
        read = RunConfig(
            game=_name(config["environment"]["game"], "game"),
            algorithm=_name(config["learner"]["algorithm"], "algorithm"),
            seed=_integer(config["seed"], "seed", at_least=-_MAX_INTEGER),
            total_frames=_integer(config["frames"], "frames", at_least=1),
            settings={**USUAL_PROTOCOL, **dict(_fields(config))},
            facts={name: value for name, value in stored.items() if name != "config"},
        )
        _integer(read.settings.get("action_repeat", 1), "action_repeat", at_least=1)
        if len(read.settings) > _MAX_FIELDS:
            raise ValueError(f"it has {len(read.settings)} fields")
    except OSError as error:
        raise DamagedConfigError(f"cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise DamagedConfigError(f"has no {error}") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise DamagedConfigError(f"is not a run's config: {error}") from None
    return read


def _name(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{field} is {plain(repr(value), limit=_MAX_NAME)}, not a name")
    return plain(value, limit=_MAX_NAME)


def _integer(value: Any, field: str, *, at_least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{field} is {plain(repr(value), limit=_MAX_NAME)}, not a whole number")
    if not at_least <= value <= _MAX_INTEGER:
        raise ValueError(f"{field} is out of bounds")
    return value


def _fields(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _fields(value)
        else:
            yield plain(RENAMED_FIELDS.get(name, name), limit=_MAX_NAME), _shown(value)


def _shown(value: Any) -> Any:
    """A number of any use and None as they are, everything else as a short text."""
    if value is None or isinstance(value, float) or (isinstance(value, int) and _is_small(value)):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return plain(text, limit=_MAX_NAME)


def _is_small(value: int) -> bool:
    return abs(value) <= _MAX_INTEGER
