"""A config by the names of its settings, which are those of the flags of `vantage train`."""

from typing import Any

from actors.games import canonical_name
from launch import config_json
from launch.config import PRESETS, Config, PresetName
from launch.config_checks import check_config
from launch.errors import InputError
from launch.nearest import did_you_mean


def make_config(preset: PresetName = "cpu", **settings: Any) -> Config:
    """A preset with other settings, such as game="breakout", n_step=3 or frames=1_000_000.

    Raises InputError for a name that is none, and for a value that cannot work.
    """
    if preset not in PRESETS:
        raise InputError(f"preset='{preset}' is none of {', '.join(PRESETS)}")
    if isinstance(settings.get("game"), str):
        settings["game"] = canonical_name(settings["game"])
    stored = config_json.to_json(PRESETS[preset])
    sections = [stored, *(section for section in stored.values() if isinstance(section, dict))]
    for name, value in settings.items():
        owner = next((section for section in sections if _is_setting(section, name)), None)
        if owner is None:
            near = did_you_mean(name, list(config_json.leaf_values(PRESETS[preset])))
            raise InputError(f"unknown setting '{name}'; {near or 'see vantage train --help'}")
        owner[name] = value
    try:
        config = config_json.from_json(stored)
    except ValueError as error:
        raise InputError(str(error)) from None
    check_config(config)
    return config


def _is_setting(section: dict[str, Any], name: str) -> bool:
    return name in section and not isinstance(section[name], dict)
