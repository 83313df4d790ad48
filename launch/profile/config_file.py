"""A config handed to another process by way of a file."""

import json
import os
import pathlib

from launch import config_json
from launch.config import Config


def write_config(path: pathlib.Path, config: Config) -> None:
    """Stores it."""
    path.write_text(json.dumps(config_json.to_json(config)))


def read_config(path: str | os.PathLike[str]) -> Config:
    """The inverse."""
    return config_json.from_json(json.loads(pathlib.Path(path).read_text()))
