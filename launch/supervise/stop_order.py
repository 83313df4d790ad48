"""In which order a run's nodes are stopped, and how many seconds each gets for its last work."""

from collections.abc import Sequence
from typing import NamedTuple

from launch.supervise.supervisor import StopStep

# The ends of the gate: they come last, because they carry what the others say.
_RELAYS = StopStep(frozenset({"gate", "tunnel"}), 5.0)
# Actors first, so that the learner's last checkpoint and then replay's see everything they wrote.
_STOP_STEPS = (
    StopStep(frozenset({"actor", "evaluator"}), 20.0),
    StopStep(frozenset({"learner"}), 60.0),
    StopStep(frozenset({"monitor"}), 20.0),
    StopStep(frozenset({"replay"}), 120.0),
    _RELAYS,
)
# The evaluator ends by itself, once it has scored the final parameters.
_FINISH_STEPS = (
    StopStep(frozenset({"actor"}), 20.0),
    StopStep(frozenset({"evaluator"}), 1800.0, ask=False),
    # It has said that it is done, and ends.
    StopStep(frozenset({"learner"}), 20.0, ask=False),
    *_STOP_STEPS[2:],
)
# With replay in the learner's process, the server must outlive the learner's loop: that process
# goes last.
_COLOCATED_STOP_STEPS = (
    StopStep(frozenset({"actor", "evaluator"}), 20.0),
    StopStep(frozenset({"monitor"}), 20.0),
    StopStep(frozenset({"learner"}), 120.0),
    _RELAYS,
)
_COLOCATED_FINISH_STEPS = (*_FINISH_STEPS[:2], *_COLOCATED_STOP_STEPS[1:])


class StopOrder(NamedTuple):
    """The steps of a stop that somebody asked for, and those after the last update."""

    when_asked: Sequence[StopStep]
    when_finished: Sequence[StopStep]


def stop_order(*, colocate: bool) -> StopOrder:
    """The order for replay in a process of its own, or in the learner's."""
    if colocate:
        return StopOrder(_COLOCATED_STOP_STEPS, _COLOCATED_FINISH_STEPS)
    return StopOrder(_STOP_STEPS, _FINISH_STEPS)
