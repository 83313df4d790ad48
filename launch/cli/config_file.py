"""`--config FILE`: settings from a file, as if its flags stood before those of the command line.

The file is a run's config.json, or a TOML (or JSON) file whose keys are names of flags. Since it
becomes flags, whatever holds for them holds for it: 200M is a number, Pong a game, a flag that is
given overrides the file.
"""

import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from launch import config_json
from launch.cli.flag_names import flag_names, switch_names
from launch.errors import InputError
from launch.nearest import did_you_mean
from report.json_file import open_plain_file, read_json

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_BYTES = 1 << 20
# What a file cannot ask for: it describes a run, not what is to be done with it.
_NOT_IN_A_FILE = frozenset({"config", "resume", "dry-run"})


class ConfigFile(NamedTuple):
    """What a file stands for."""

    flags: list[str]
    is_run: bool  # it is a run's, and says every setting


def read_config_file(path: pathlib.Path, flags: Any) -> ConfigFile:
    """The file, for a command with these flags; raises InputError, in one line, for any other."""
    try:
        stored = _read_toml(path) if path.suffix == ".toml" else read_json(path)
        if isinstance(stored, Mapping) and isinstance(stored.get("config"), Mapping):
            return ConfigFile(_flags_of(_settings_of(stored["config"]), flags), is_run=True)
        if not isinstance(stored, Mapping):
            raise ValueError("is neither a run's config.json nor a table of flags")
        return ConfigFile(_flags_of(stored, flags), is_run=False)
    except OSError as error:
        raise InputError(f"--config '{path}' cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"--config '{path}': {' '.join(str(error).split())}") from None


def _settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    settings = config_json.leaf_values(config_json.from_json(config))
    # A run writes down its own length here; for one of another length that was no choice.
    if settings["schedule_frames"] == settings["frames"]:
        del settings["schedule_frames"]
    return settings


def _read_toml(path: pathlib.Path) -> dict[str, Any]:
    with open_plain_file(path) as file:
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"is larger than {_MAX_BYTES >> 20} MiB, which no list of flags is")
    return tomllib.loads(text.decode())


def _flags_of(settings: Mapping[str, Any], flags: Any) -> list[str]:
    names = [name for name in flag_names(flags) if name not in _NOT_IN_A_FILE]
    switches = switch_names(flags)
    found = []
    for key, value in settings.items():
        name = key.replace("_", "-")
        if name not in names:
            raise ValueError(_unknown(key, names))
        found.append(_flag(name, value, is_switch=name in switches))
    return found


def _unknown(key: str, names: Sequence[str]) -> str:
    if key.replace("_", "-") in _NOT_IN_A_FILE:
        return f"'{key}' belongs on the command line, not into a file"
    near = did_you_mean(key, [name.replace("-", "_") for name in names])
    return f"unknown key '{key}'; {near or 'keys are the names of flags, as --help lists them'}"


def _flag(name: str, value: Any, *, is_switch: bool) -> str:
    key = name.replace("-", "_")
    if isinstance(value, bool) != is_switch:
        kind = "true or false" if is_switch else "a number or a text"
        raise ValueError(f"{key}={value!r} should be {kind}")
    if is_switch:
        return f"--{name}" if value else f"--no-{name}"
    if not isinstance(value, (int, float, str)) and value is not None:
        raise ValueError(
            f"{key} is a {type(value).__name__}; give one value, at the top of the file"
        )
    return f"--{name}={value}"
