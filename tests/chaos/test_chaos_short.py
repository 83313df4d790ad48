"""The two faults that matter most, once each, and the checks that chaos relies on.

`make chaos` does all of them, many times.
"""

import numpy as np
import pytest
import reverb

from actors.n_step import NStepStream
from reverb_server import tables
from reverb_server.rate_limit import RateLimit
from tests.chaos.live_rounds import live_rounds
from tests.chaos.synthetic import (
    EPISODE_STEPS,
    SyntheticActor,
    check_item,
    check_replay,
    make_row,
    synthetic_layout,
)

N_STEP, TRANSITIONS = 5, 4


def items_of(episode):
    """All items of an episode and the next, cut out by hand."""
    stream, rows = NStepStream(N_STEP, TRANSITIONS), []
    for number in (episode, episode + 1):
        increments = [stream.step(make_row(number, step)) for step in range(EPISODE_STEPS)]
        increments.append(stream.end(make_row(number, EPISODE_STEPS).frame, terminated=True))
        for increment in increments:
            rows += increment.rows
            for item in increment.items:
                frames = np.stack([row.frame for row in rows[item]])
                yield [frames, np.stack([tables.pack_step(row) for row in rows[item]])]


def test_whole_items_pass_and_torn_ones_do_not():
    items = list(items_of(3))
    assert len(items) >= 2 * EPISODE_STEPS // TRANSITIONS - 2
    for item in items:
        check_item(*item)
    other = list(items_of(6))
    for part in range(2):
        torn = [np.copy(array) for array in items[10]]
        torn[part] = other[10][part]
        with pytest.raises(AssertionError):
            check_item(*torn)
        torn[part] = items[10][part].copy()
        torn[part][5:] = items[12][part][5:]
        with pytest.raises(AssertionError):
            check_item(*torn)
    frames, steps = items[15]
    frames[2, 40, 40] ^= 1
    with pytest.raises(AssertionError):
        check_item(frames, steps)


def test_a_synthetic_actor_fills_a_replay_that_passes():
    server = reverb.Server(
        tables.make_tables(
            layout=synthetic_layout(N_STEP, TRANSITIONS),
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
