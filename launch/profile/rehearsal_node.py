"""Runs one node of a rehearsal in this process; see `launch.supervise.node_entry`.

What is pretended is imported by the node that pretends it.
"""

import pathlib
import sys
from typing import Any

import numpy as np
import reverb

from launch.config import Config
from launch.profile.rehearsal import Pretence
from launch.run_dir import RunDir
from launch.supervise import node_entry


def run_learner(
    config: Config, run_dir: pathlib.Path, client: reverb.Client, *, update_ms: float
) -> None:
    """The learner's node with a pretended device, and without checkpoints."""
    from launch.nodes.learner import Parts, run_learner_node
    from launch.profile.pretended_device import pretended_learner

    parts = Parts(lambda config: pretended_learner(config, update_ms), save=lambda *_: 0)
    run_learner_node(config, run_dir, client, parts)


def run_actor(config: Config, index: int, client: reverb.Client) -> None:
    """An actor's node on recorded games, which acts without looking."""
    from launch.nodes.actor import run_actor_node
    from launch.nodes.player import Parts
    from launch.profile.recorded_games import RecordedGames

    def make_greedy(network: Any) -> Any:
        return lambda params, stacks: np.zeros(len(stacks), np.int32)

    run_actor_node(config, index, client, Parts(RecordedGames, make_greedy))


def main(argv: list[str]) -> None:
    """Entry point of the process."""
    pretence = Pretence.load(RunDir(pathlib.Path(argv[1])))
    replaced: dict[str, Any] = {
        "learner": lambda *args: run_learner(*args, update_ms=pretence.update_ms)
    }
    if pretence.recorded_play:
        replaced["actor"] = run_actor
    node_entry.main(argv, replaced)


if __name__ == "__main__":
    main(sys.argv)
