"""The two faults that matter most, once each, and the checks that chaos relies on.

`make chaos` does all of them, many times.
"""

import numpy as np
import pytest
import reverb

from actors.n_step import NStepStream
from actors.observation import OBSERVATION_SHAPE
from reverb_server import tables
from reverb_server.rate_limit import RateLimit
from tests.chaos.live_rounds import live_rounds
from tests.chaos.synthetic import EPISODE_STEPS, SyntheticActor, check_item, check_replay, make_row

N_STEP = 5


def items_of(episode):
    """All items of an episode, cut out by hand."""
    stream, rows = NStepStream(N_STEP), []
    increments = [stream.step(make_row(episode, step)) for step in range(EPISODE_STEPS)]
    increments.append(stream.end(make_row(episode, EPISODE_STEPS).frame, terminated=True))
    for increment in increments:
        rows += increment.rows
        for item in increment.items:
            stacks = ([row.frame for row in rows[part]] for part in (item.o_tm1, item.o_t))
            steps = [tables.pack_step(row) for row in rows[item.steps]]
            yield [*map(np.stack, stacks), np.stack(steps)]


def test_whole_items_pass_and_torn_ones_do_not():
    items = list(items_of(3))
    assert len(items) == EPISODE_STEPS
    for item in items:
        check_item(*item)
    other = list(items_of(4))
    for part in range(3):
        torn = [np.copy(array) for array in items[10]]
        torn[part] = other[10][part]
        with pytest.raises(AssertionError):
            check_item(*torn)
    o_tm1, o_t, steps = items[20]
    o_t[2, 40, 40] ^= 1
    with pytest.raises(AssertionError):
        check_item(o_tm1, o_t, steps)


def test_a_synthetic_actor_fills_a_replay_that_passes():
    server = reverb.Server(
        tables.make_tables(
            layout=tables.ItemLayout(N_STEP, OBSERVATION_SHAPE),
            capacity_steps=1000,
            rate_limit=RateLimit(samples_per_insert=1.0, warmup_steps=60, error_buffer=1e9),
            prioritization=None,
        )
    )
    actor = SyntheticActor(f"localhost:{server.port}", n_step=N_STEP, period_seconds=0.01)
    try:
        assert check_replay(f"localhost:{server.port}", 50) == 50
    finally:
        actor.close()
        server.stop()


def test_a_run_survives_the_death_of_replay_and_of_the_learner(tmp_path):
    names = ["kill -9 replay-0", "kill -9 learner-0"]
    rounds = list(live_rounds(tmp_path, names, rounds=1, quick_rounds=1, seed=1))
    assert [one.problem for one in rounds] == ["", ""]
    assert sorted(one.fault for one in rounds) == sorted(names)
    assert all(one.checked > 0 for one in rounds)
