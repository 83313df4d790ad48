"""What a serial run stores with the learner: the arrays of its other parts, under `part/name`."""

from collections.abc import Mapping

import numpy as np

from launch.build import num_evaluation_games
from launch.config import Config
from launch.config_json import leaf_values
from launch.errors import InputError

Parts = Mapping[str, Mapping[str, np.ndarray]]


def join_parts(parts: Parts) -> dict[str, np.ndarray]:
    """All arrays by `part/name`."""
    return {f"{part}/{name}": a for part, arrays in parts.items() for name, a in arrays.items()}


def split_parts(joined: Mapping[str, np.ndarray]) -> Parts:
    """Arrays by part and name, from what `join_parts` returned."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for key, array in joined.items():
        part, _, name = key.partition("/")
        parts.setdefault(part, {})[name] = array
    return parts


def check_same_games(parts: Parts, config: Config) -> None:
    """Refuses sizes that processes may change when they resume: here each game goes on."""
    stored = {
        "actors": sum(part.startswith("actor-") for part in parts),
        "envs_per_actor": len(parts["games-0"]["restarts"]),
        "eval_episodes": len(parts["evaluation"]["restarts"]),
    }
    # An evaluation by frames plays one game, whatever the number of episodes would be.
    asked = leaf_values(config) | {"eval_episodes": num_evaluation_games(config)}
    for name, before in stored.items():
        now = asked[name]
        if now != before:
            raise InputError(
                f"cannot resume --serial with {name}={now}: the run was stored with "
                f"{name}={before}; drop the flag, or start a new run"
            )
