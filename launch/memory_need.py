"""What the roles of a run take in memory, before any of them is started.

Measured as private memory after two minutes of Pong (Python 3.11, preset `cpu`): an actor has 163
MiB, the evaluator 165, replay 96 beside its table, the monitor 23, the learner 779, and the process
that all but the learner are forked from 250, most of which they share. A learner with the smallest
network has 473 (Python 3.10), with preset `paper` 950, with batches of 512 2667. Here are the least
of these, so that what is refused could not have worked.
"""

from collections.abc import Sequence
from typing import NamedTuple

from launch.config import Config
from launch.layout import NodeName
from launch.replay import replay_bytes_estimate

_MIB = 2**20
_ROLE_BYTES = {
    "actor": 150 * _MIB,
    "evaluator": 150 * _MIB,
    "learner": 450 * _MIB,
    "monitor": 20 * _MIB,
    "replay": 90 * _MIB,
}
_FORKED_FROM_BYTES = 230 * _MIB
_GAME_BYTES = _MIB
_SAMPLED_BYTES = _MIB // 2


class MemoryNeed(NamedTuple):
    """Bytes on one host."""

    actors: int
    replay: int  # the table, when it is full
    others: int

    @property
    def total(self) -> int:
        """What the host must have free for all of it."""
        return sum(self)


def memory_need(config: Config, names: Sequence[NodeName]) -> MemoryNeed:
    """What these nodes of a run need on the host that they are on."""
    roles = [name.role for name in names]
    actor = _ROLE_BYTES["actor"] + config.actor.envs_per_actor * _GAME_BYTES
    batches = config.sampled_transitions * _SAMPLED_BYTES if "learner" in roles else 0
    # The learner's host has the table, in a process of its own or not.
    table = replay_bytes_estimate(config) if "learner" in roles else 0
    others = sum(_ROLE_BYTES[role] for role in roles if role != "actor")
    if any(role != "learner" for role in roles):
        others += _FORKED_FROM_BYTES
    return MemoryNeed(roles.count("actor") * actor, table, others + batches)
