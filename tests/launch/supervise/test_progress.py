"""What a supervisor hears of a node's loops, with the time told by the test."""

import os

import pytest

from launch import heartbeat
from launch.heartbeat import Beat, Heartbeat, Phase
from launch.supervise.own_time import OwnTime
from launch.supervise.progress import Progress

STUCK_SECONDS = 10.0


class Node:
    """A process's two ends: what it says, and what is heard."""

    def __init__(self):
        self.progress = Progress(0.0, STUCK_SECONDS)

    def say(self, now: float, phase: Phase, number: int = 0, loop: str = "learner") -> None:
        os.write(self.progress.descriptor, heartbeat.encode(loop, Beat(phase, number)))
        self.progress.poll(now)

    def is_stuck(self, now: float) -> bool:
        return self.progress.standstill(now) is not None


@pytest.fixture
def node():
    node = Node()
    yield node
    node.progress.close_writing()
    node.progress.close()


@pytest.mark.parametrize("phase", Phase)
def test_a_loop_may_take_as_long_as_its_phase_says_and_no_longer(node, phase):
    node.say(100.0, phase)
    bound = phase.patience * STUCK_SECONDS
    assert not node.is_stuck(100.0 + min(bound, 1e9))
    if not phase.rests:
        assert node.is_stuck(100.1 + bound)


def test_a_process_that_never_says_anything_is_starting(node):
    bound = Phase.STARTING.patience * STUCK_SECONDS
    assert not node.is_stuck(bound)
    assert str(node.progress.standstill(bound + 1)) == (
        f"made no progress for {bound + 1:.0f} s (last: starting)"
    )


def test_a_loop_that_waits_for_ever_but_comes_round_is_not_stuck(node):
    for now in range(0, 10_000, 9):
        node.say(now, Phase.WAITING_FOR_DATA)
        assert not node.is_stuck(now + 9)


def test_one_loop_of_two_that_stands_still_is_found(node):
    node.say(0.0, Phase.UPDATING, 7)
    node.say(9.0, Phase.SERVING, 3, loop="replay")
    standstill = node.progress.standstill(11.0)
    assert (standstill.seconds, str(standstill.last)) == (11.0, "update 7")
    assert str(node.progress) == "update 7, serving, 3 inserts"
    assert node.progress.age_seconds(11.0) == 11.0


def test_an_update_may_take_as_long_as_the_first_one_that_also_compiled(node):
    node.say(0.0, Phase.COMPILING)
    node.say(50.0, Phase.UPDATING, 1)
    assert not node.is_stuck(150.0)
    assert node.is_stuck(151.0)


def test_a_long_checkpoint_makes_nobody_more_patient(node):
    node.say(0.0, Phase.SAVING)
    node.say(100.0, Phase.UPDATING)
    assert node.is_stuck(111.0)


def test_time_in_which_a_process_could_not_run_is_forgiven(node):
    node.say(0.0, Phase.UPDATING)
    node.progress.forgive(1000.0)
    assert not node.is_stuck(1010.0)
    assert node.is_stuck(1011.0)


def test_work_is_told_from_waiting(node):
    assert not node.progress.has_worked
    node.say(0.0, Phase.WAITING_FOR_DATA)
    node.say(1000.0, Phase.COMPILING)
    assert not node.progress.has_worked and node.progress.worked_seconds == 0.0
    node.say(2000.0, Phase.UPDATING)
    node.say(2040.0, Phase.UPDATING)
    node.say(2999.0, Phase.WAITING_FOR_DATA)
    assert node.progress.has_worked and node.progress.worked_seconds == 40.0


def test_the_furthest_update_is_kept_and_numbers_that_start_anew_are_not(node):
    node.say(0.0, Phase.PLAYING, 50)
    assert node.progress.furthest is None
    for number in (7, 12, 9):
        node.say(0.0, Phase.UPDATING, number)
    node.say(0.0, Phase.SAVING)
    assert node.progress.furthest == 12


def test_what_is_no_beat_is_passed_over(node):
    os.write(node.progress.descriptor, b"Segmentation fault\nlearner NAPPING 3\n\xff\n")
    node.say(0.0, Phase.UPDATING, 5)
    assert str(node.progress) == "update 5"


def test_only_the_loop_that_says_so_has_finished(node):
    node.say(0.0, Phase.SERVING, loop="replay")
    node.say(0.0, Phase.FINISHED)
    assert node.progress.finished("learner") and not node.progress.finished("replay")


def test_a_beat_cut_in_two_by_the_pipe_is_put_together(node):
    line = heartbeat.encode("learner", Beat(Phase.UPDATING, 12))
    for part in (line[:9], line[9:]):
        os.write(node.progress.descriptor, part)
        node.progress.poll(0.0)
    assert str(node.progress) == "update 12"


def test_a_beat_is_written_when_the_phase_changes_and_else_now_and_then(node):
    now = [0.0]
    heart = Heartbeat("learner", node.progress.descriptor, clock=lambda: now[0])
    said = []
    for tick in range(100):
        now[0] = tick / 100
        heart.beat(Phase.UPDATING, tick)
        node.progress.poll(now[0])
        said.append(str(node.progress))
    assert len(set(said)) == 4
    heart.beat(Phase.SAVING)
    node.progress.poll(1.0)
    assert str(node.progress) == "writing a checkpoint"


def test_nobody_waits_for_a_supervisor_that_does_not_read(node):
    heart = Heartbeat("learner", node.progress.descriptor, clock=iter(range(10_000)).__next__)
    for number in range(9_999):
        heart.beat(Phase.UPDATING, number)
    node.progress.poll(0.0)
    assert node.progress.has_worked


def test_a_process_without_a_supervisor_beats_into_nothing(monkeypatch):
    monkeypatch.delenv(heartbeat.VARIABLE, raising=False)
    heartbeat.of_this_process("learner").beat(Phase.UPDATING)


def test_a_pause_of_the_whole_machine_counts_as_a_moment():
    now = [0.0]
    own_time = OwnTime(clock=lambda: now[0])
    for now[0] in (0.2, 0.4, 3600.4, 3600.6):
        seconds = own_time()
    assert seconds == pytest.approx(0.2 + 0.2 + 1.0 + 0.2)
