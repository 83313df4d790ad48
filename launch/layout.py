"""Which nodes a run has: groups of the Launchpad program, and how many nodes are in each."""

import dataclasses

from launch.config import Config

# Actor hosts that a run in a cluster can be scaled to: a key is 1.6 kB, a Secret 1 MiB.
MAX_CLUSTER_HOSTS = 500


@dataclasses.dataclass(frozen=True)
class NodeName:
    """A node of the program."""

    role: str
    index: int

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"


def program_layout(config: Config) -> dict[str, int]:
    """Group name -> number of nodes, in the order they are started."""
    layout = {"learner": 1, "actor": config.actor.actors, "evaluator": 1, "monitor": 1}
    # A colocated server is a part of the learner's node.
    return layout if config.replay.colocate else {"replay": 1, **layout}


def node_names(config: Config) -> list[NodeName]:
    """All nodes of a run."""
    layout = program_layout(config)
    return [NodeName(role, index) for role, number in layout.items() for index in range(number)]
