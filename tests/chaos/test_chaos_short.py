"""The two faults that matter most, once each, and the checks that chaos relies on.

`make chaos` does all of them, many times.
"""

import numpy as np
import pytest
import reverb

from actors.n_step import NStepStream
from reverb_server import tables
from reverb_server.rate_limit import RateLimit
from tests.chaos.chaos import live_rounds
from tests.chaos.synthetic import EPISODE_STEPS, SyntheticActor, check_item, check_replay, make_row

N_STEP = 5


def items_of(episode):
    """All items of an episode, cut out by hand."""
    stream, rows, items = NStepStream(N_STEP), [], []
    increments = [stream.step(make_row(episode, step)) for step in range(EPISODE_STEPS)]
    increments.append(stream.end(make_row(episode, EPISODE_STEPS).frame, terminated=True))
    for increment in increments:
        rows += increment.rows
        items += [(len(rows) + source, len(rows) + last) for source, last in increment.items]
    frames = np.stack([row.frame for row in rows])
    steps = np.stack([tables.pack_step(*row[1:]) for row in rows])
    for source, bootstrap in items:
        stacks = (frames[last - 3 : last + 1].copy() for last in (source, bootstrap))
        yield [*stacks, steps[source : source + N_STEP].copy()]


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
            n_step=N_STEP,
            capacity_steps=1000,
            rate_limit=RateLimit(samples_per_insert=1.0, warmup_steps=60, error_buffer=1e9),
            num_params=3,
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
    rounds = list(live_rounds(tmp_path, names, rounds=1, seed=1))
    assert [one.problem for one in rounds] == ["", ""]
    assert sorted(one.fault for one in rounds) == sorted(names)
    assert all(one.checked > 0 for one in rounds)
