"""A config handed to another process by way of a file."""

import json
import os
import pathlib

from launch import config as config_lib
from launch.config import Config


def write_config(path: pathlib.Path, config: Config) -> None:
    """Stores it."""
    path.write_text(json.dumps(config_lib.to_json(config)))


def read_config(path: str | os.PathLike[str]) -> Config:
    """The inverse."""
    return config_lib.from_json(json.loads(pathlib.Path(path).read_text()))
