"""Checkpoints beside the updates: what is written is the state as it was, whatever comes next."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.background_save import BackgroundSave, finished_save
from learner.step_counter import StepCounter
from learner.update import LearnerState

WAIT_SECONDS = 60.0  # bounds a hang


def make_state(value: float) -> LearnerState:
    params = {"torso": {"w": jnp.full((100, 100), value)}}
    return LearnerState(params, {"torso": {"w": jnp.zeros((2, 2))}}, (jnp.ones(3),), jnp.int32(5))


def test_what_is_written_is_the_state_before_the_next_update_took_its_buffers() -> None:
    update = jax.jit(lambda state: jax.tree.map(lambda x: x * 2, state), donate_argnums=0)
    go_on, written = threading.Event(), []

    def write(state: LearnerState, steps: StepCounter) -> int:
        assert go_on.wait(WAIT_SECONDS)
        written.append((jax.device_get(state), steps))
        return 1

    save = BackgroundSave(write)
    state, steps = make_state(3.0), StepCounter(total=7, last_inserts=7)
    results = []
    for _ in range(2):
        results.append(save.start(state, steps))
        before, state = state, update(state)
        assert before.params["torso"]["w"].is_deleted()
        steps.observe(steps.last_inserts + 10)
    assert not any(result.done() for result in results)
    go_on.set()
    assert [result.result(WAIT_SECONDS) for result in results] == [1, 1]
    for (stored, stored_steps), value, updates, total in zip(
        written, (3.0, 6.0), (5, 10), (7, 17), strict=True
    ):
        np.testing.assert_array_equal(stored.params["torso"]["w"], np.full((100, 100), value))
        assert (int(stored.updates), stored_steps.total) == (updates, total)


def no_room(state: LearnerState, steps: StepCounter) -> int:
    raise OSError("the disk is full")


def test_what_goes_wrong_in_the_background_is_in_the_result() -> None:
    result = BackgroundSave(no_room).start(make_state(1.0), StepCounter())
    with pytest.raises(OSError, match="the disk is full"):
        result.result(WAIT_SECONDS)
    with pytest.raises(OSError, match="the disk is full"):
        BackgroundSave(no_room).finish(make_state(1.0), StepCounter())


def test_the_last_one_is_on_disk_after_all_before_it() -> None:
    written: list[int] = []

    def write(state: LearnerState, steps: StepCounter) -> int:
        written.append(steps.total)
        return steps.total

    save = BackgroundSave(write)
    for total in (1, 2):
        save.start(make_state(1.0), StepCounter(total=total))
    assert save.finish(make_state(1.0), StepCounter(total=3)) == 3
    assert written == [1, 2, 3]


def test_a_finished_save_is_over_when_it_returns_and_holds_its_error() -> None:
    saved = finished_save(lambda state, steps: int(state.updates), make_state(1.0), StepCounter())
    assert saved.done() and saved.result(0) == 5
    failed = finished_save(no_room, make_state(1.0), StepCounter())
    with pytest.raises(OSError, match="the disk is full"):
        failed.result(0)
