"""Which phase a run is in, by what the loops of its nodes say of themselves."""

from collections.abc import Sequence
from typing import NamedTuple

from launch.heartbeat import Beat, Phase
from launch.monitor.run_phase import SCORING, TRAINING, PhaseClock, RunPhase, filling
from launch.supervise.node_process import NodeProcess, State
from launch.supervise.progress import Heard

_STARTING = (Phase.STARTING, Phase.RESTORING)
_SILENT = Heard(Beat(Phase.STARTING), has_worked=False)
_STOPPING = (State.STOPPING, State.STOPPED)


class _Seen(NamedTuple):
    """What decides the phase."""

    replay: Heard
    learner: Heard
    scores: bool  # the evaluator is up
    stops: bool


class RunPhases:
    """The phase of a run whose learner and replay are nodes of this host."""

    def __init__(self, warmup_steps: int):
        self._warmup_steps = warmup_steps
        self._clock = PhaseClock()

    def __call__(self, nodes: Sequence[NodeProcess]) -> RunPhase:
        """The phase of now."""
        seen = _Seen(
            replay=_heard(nodes, "replay"),
            learner=_heard(nodes, "learner"),
            scores=any(node.is_up for node in nodes if node.spec.name.role == "evaluator"),
            stops=any(node.state in _STOPPING for node in nodes),
        )
        return self._clock(*self._name_of(seen))

    def _name_of(self, seen: _Seen) -> tuple[str, str]:
        """Name and extent."""
        replay, learner = seen.replay.beat, seen.learner.beat
        if learner.phase is Phase.FINISHED and seen.scores:
            return SCORING, ""
        if seen.stops:
            return "stopping", ""
        if replay.phase in _STARTING:
            return "starting replay", ""
        if learner.phase in _STARTING:
            return "starting the learner", ""
        waits = learner.phase is Phase.WAITING_FOR_DATA
        if waits and replay.phase is Phase.SERVING and replay.number < self._warmup_steps:
            return filling(replay.number, self._warmup_steps)
        if learner.phase in (Phase.COMPILING, Phase.WAITING_FOR_REPLAY):
            return str(learner), ""
        if waits and not seen.learner.has_worked:
            return str(learner), ""
        return TRAINING, ""


def _heard(nodes: Sequence[NodeProcess], loop: str) -> Heard:
    """What a loop said last, in whichever node it lives: replay may live in the learner's."""
    for node in nodes:
        # One that waits for its next start has said what it said in its last life.
        if node.progress is not None and node.state is not State.WAITING:
            heard = node.progress.heard(loop)
            if heard is not None:
                return heard
    return _SILENT
