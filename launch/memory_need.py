"""What the roles of a run take in memory, before any of them is started.

Measured as private memory after two minutes of Pong (Python 3.10): an actor has 324 MiB with the
preset `cpu`, 512 with 64 games and the Nature network, 620 with 256 games; a learner 473 with the
smallest network, 735 with `cpu`, 950 with `paper`, 2667 with batches of 512. Here are the least of
these, so that what is refused could not have worked.
"""

from collections.abc import Sequence
from typing import NamedTuple

from launch.config import Config
from launch.layout import NodeName
from launch.replay import replay_bytes_estimate

_MIB = 2**20
_ROLE_BYTES = {
    "actor": 310 * _MIB,
    "evaluator": 320 * _MIB,
    "learner": 450 * _MIB,
    "monitor": 200 * _MIB,
    "replay": 250 * _MIB,
}
_GAME_BYTES = _MIB
_SAMPLED_BYTES = _MIB // 2


class MemoryNeed(NamedTuple):
    """Bytes on one host."""

    actors: int
    replay: int  # the table, when it is full
    others: int

    @property
    def total(self) -> int:
        """Of all roles together."""
        return sum(self)


def memory_need(config: Config, names: Sequence[NodeName]) -> MemoryNeed:
    """What these nodes of a run need on the host that they are on."""
    roles = [name.role for name in names]
    actor = _ROLE_BYTES["actor"] + config.actor.envs_per_actor * _GAME_BYTES
    batches = config.sampled_transitions * _SAMPLED_BYTES if "learner" in roles else 0
    # The learner's host has the table, in a process of its own or not.
    table = replay_bytes_estimate(config) if "learner" in roles else 0
    others = sum(_ROLE_BYTES[role] for role in roles if role != "actor")
    return MemoryNeed(roles.count("actor") * actor, table, others + batches)
