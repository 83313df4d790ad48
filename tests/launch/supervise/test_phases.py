"""Which phase a run is in, by what its loops say."""

import os
import pathlib
from collections.abc import Iterator

import pytest

from launch import heartbeat
from launch.heartbeat import Beat, Phase
from launch.layout import NodeName
from launch.supervise.node_process import NodeProcess, NodeSpec, Program, State
from launch.supervise.phases import RunPhases
from launch.supervise.progress import Progress

WARMUP_STEPS = 5000


class Nodes:
    """Nodes of a run that say what they are told to."""

    def __init__(self, *roles: str):
        self.all = {role: self._node(role) for role in roles}
        self._phase_of = RunPhases(WARMUP_STEPS)

    def _node(self, role: str) -> NodeProcess:
        spec = NodeSpec(NodeName(role, 0), Program([], {}), pathlib.Path(), stuck_seconds=60.0)
        node = NodeProcess(spec, "RESTART")
        node.state, node.progress = State.RUNNING, Progress(0.0, 60.0)
        return node

    def say(self, loop: str, phase: Phase, number: int = 0, *, of: str | None = None) -> str:
        """The run's phase after a beat of a loop, which may live in the node of another role."""
        progress = self.all[of or loop].progress
        os.write(progress.descriptor, heartbeat.encode(loop, Beat(phase, number)))
        progress.poll(0.0)
        return self.phase

    @property
    def phase(self) -> str:
        now = self._phase_of(list(self.all.values()))
        return f"{now.name} {now.extent}".strip()

    def close(self) -> None:
        for node in self.all.values():
            node.progress.close_writing()
            node.progress.close()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    nodes = Nodes("replay", "learner", "actor", "evaluator")
    yield nodes
    nodes.close()


def test_a_run_starts_fills_replay_compiles_trains_and_is_scored(nodes):
    assert nodes.phase == "starting replay"
    assert nodes.say("learner", Phase.STARTING) == "starting replay"
    assert nodes.say("replay", Phase.RESTORING) == "starting replay"
    assert nodes.say("replay", Phase.SERVING, 0) == "starting the learner"
    assert nodes.say("learner", Phase.WAITING_FOR_DATA) == "filling replay 0/5,000"
    assert nodes.say("replay", Phase.SERVING, 3120) == "filling replay 3,120/5,000"
    assert nodes.say("replay", Phase.SERVING, 5008) == "waiting for data"
    assert nodes.say("learner", Phase.COMPILING) == "compiling"
    assert nodes.say("learner", Phase.UPDATING, 4) == "training"
    # Actors that are slower than the learner do not make it another phase.
    assert nodes.say("learner", Phase.WAITING_FOR_DATA) == "training"
    assert nodes.say("learner", Phase.FINISHED) == "scoring the final parameters"
    nodes.all["actor"].state = State.STOPPED
    assert nodes.phase == "scoring the final parameters"
    nodes.all["evaluator"].state = State.DONE
    assert nodes.phase == "stopping"


def test_a_learner_that_waits_for_its_next_start_does_not_train(nodes):
    nodes.say("replay", Phase.SERVING, 9000)
    assert nodes.say("learner", Phase.UPDATING, 4) == "training"
    nodes.all["learner"].state = State.WAITING
    assert nodes.phase == "starting the learner"


def test_replay_that_is_away_is_waited_for(nodes):
    nodes.say("replay", Phase.SERVING, 9000)
    nodes.say("learner", Phase.UPDATING, 4)
    assert nodes.say("learner", Phase.WAITING_FOR_REPLAY) == "waiting for replay"


def test_replay_in_the_learners_process_is_heard_there():
    nodes = Nodes("learner", "actor", "evaluator")
    assert nodes.phase == "starting replay"
    nodes.say("replay", Phase.SERVING, 7, of="learner")
    assert nodes.say("learner", Phase.WAITING_FOR_DATA) == "filling replay 7/5,000"
    nodes.close()
