"""When the learner's loop counts as alive: updating, waiting in turn, saving."""

import threading

import jax.numpy as jnp
import pytest

from launch import heartbeat
from launch.heartbeat import Beat, Phase
from launch.nodes.learner_heartbeat import LearnerHeartbeat, of_background_save
from launch.supervise.progress import Progress
from learner.background_save import BackgroundSave
from learner.loop import Edges
from learner.step_counter import StepCounter
from reverb_server.client import TableCounts

WAIT_SECONDS = 60.0  # bounds a hang
COUNTS = TableCounts(inserts=1, samples=1, size=1)


class World:
    """A heartbeat that writes down beats, and edges that do what the test says."""

    def __init__(self):
        self.beats: list[Beat] = []
        self.rounds = 0
        self.counts: TableCounts | None = COUNTS
        self.heard = LearnerHeartbeat(
            self, updates=100, updates_per_call=4, source_rounds=lambda: self.rounds
        )
        self.edges = self.heard.of_edges(
            Edges(
                next_batch=lambda timeout_seconds: None,
                read_counts=lambda: self.counts,
                publish=lambda state, progress: None,
                report=lambda row: None,
                start_save=lambda state, steps: None,
                save_and_wait=lambda state, steps: self.beats.append("file") or 7,
                update_priorities=None,
                should_stop=lambda: False,
            )
        )

    def beat(self, phase: Phase, number: int = 0) -> None:
        self.beats.append(Beat(phase, number))

    def wait(self) -> list[Beat]:
        """One round of a loop without data; what it said."""
        self.beats.clear()
        self.edges.next_batch(0.0)  # a look before the wait says nothing
        assert self.beats == []
        self.edges.next_batch(1.0)
        self.edges.read_counts()
        return list(self.beats)


@pytest.fixture
def world():
    return World()


def test_the_first_update_compiles_and_all_are_counted(world):
    result = jnp.zeros(3)
    update = world.heard.of_update(lambda state, transition, weights: (state, result))
    assert update("state", None, None) == ("state", result)
    update("state", None, None)
    assert world.beats == [
        Beat(Phase.COMPILING),
        Beat(Phase.UPDATING, 104),
        Beat(Phase.UPDATING, 108),
    ]


def test_a_checkpoint_that_is_waited_for_is_announced_and_one_in_the_background_covers_nothing_up(
    world,
):
    world.edges.start_save(None, None)
    assert world.beats == []
    assert world.edges.save_and_wait(None, None) == 7
    assert world.beats == [Beat(Phase.SAVING), "file"]


def test_a_disk_that_hangs_is_found_although_the_updates_go_on(monkeypatch):
    progress = Progress(0.0, stuck_seconds=1.0)
    monkeypatch.setenv(heartbeat.VARIABLE, str(progress.descriptor))
    begun, go_on = threading.Event(), threading.Event()

    def write(state, steps):
        begun.set()
        if not go_on.wait(WAIT_SECONDS):
            raise TimeoutError
        raise OSError("the disk is full")

    save = of_background_save(heartbeat.of_this_process("saver"), write)
    learner = heartbeat.of_this_process("learner")
    saving = BackgroundSave(save).start({"w": jnp.zeros(3)}, StepCounter())
    assert begun.wait(WAIT_SECONDS)
    progress.poll(0.0)
    learner.beat(Phase.UPDATING, 1)
    bound = Phase.SAVING.patience
    progress.poll(bound + 0.5)
    assert progress.standstill(bound) is None
    assert str(progress.standstill(bound + 0.5)) == (
        f"made no progress for {bound + 0.5:.0f} s (last: writing a checkpoint)"
    )
    assert str(progress) == "writing a checkpoint, update 1"

    go_on.set()
    with pytest.raises(OSError, match="the disk is full"):
        saving.result(WAIT_SECONDS)
    progress.poll(bound + 1.0)
    assert progress.standstill(bound + 1.0) is None
    assert str(progress) == "update 1"
    assert progress.age_seconds(bound + 1.25) == 0.75
    progress.close_writing()
    progress.close()


def test_waiting_for_data_counts_while_its_source_comes_round(world):
    for world.rounds in range(3):
        assert world.wait() == [Beat(Phase.WAITING_FOR_DATA)]


def test_a_source_that_hangs_although_replay_answers_is_not_covered_up(world):
    assert world.wait() == [Beat(Phase.WAITING_FOR_DATA)]
    assert world.wait() == [] and world.wait() == []


def test_while_replay_is_away_waiting_counts_and_then_the_source_gets_its_time(world):
    world.counts = None
    world.wait()
    assert world.wait() == [Beat(Phase.WAITING_FOR_REPLAY)] == world.wait()
    world.counts = COUNTS
    world.wait()
    assert world.wait() == [Beat(Phase.WAITING_FOR_DATA)]
    assert world.wait() == []
