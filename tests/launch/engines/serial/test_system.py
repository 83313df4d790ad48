"""Serial runs: every algorithm trains, and a seed decides everything."""

import dataclasses
import functools

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from launch import build
from launch.errors import InputError
from launch.run_dir import RunDir
from launch.stored.best_params import load_best
from learner import acting
from report.metrics_file import read_rows
from tests.launch.engines.serial.make_system import make_system
from tests.launch.tiny_run import tiny_config


@pytest.fixture(scope="module", autouse=True)
def compiled_once():
    """Systems of one config share their compiled functions, which have no state of their own."""
    make_learner, updates = build.make_learner, {}

    def share_update(config):
        state, update = make_learner(config)
        return state, updates.setdefault(config, update)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "make_learner", share_update)
        patch.setattr(build, "network_of", functools.cache(build.network_of))
        patch.setattr(acting, "make_greedy", functools.cache(acting.make_greedy))
        yield


def train(config, folder):
    run_dir = RunDir(folder)
    run_dir.create(config)
    return make_system(config, run_dir).run(), list(read_rows(run_dir.metrics_file))


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize("algorithm", ["va", "behavior_dueling", "dueling", "q"])
def test_every_algorithm_trains_by_changing_one_flag(tmp_path, algorithm):
    config = tiny_config(algorithm=algorithm)
    state, rows = train(config, tmp_path / algorithm)
    # 400 agent steps, 200 of them warm-up, then an update every 4. Episodes cut off together bring
    # their last items in one burst: 40 to 50 updates.
    assert 40 <= int(state.updates) <= 50
    learner = [row for row in rows if row["role"] == "learner"][-1]
    assert learner["frames"] == config.frames
    assert np.isfinite(learner["loss"]) and np.isfinite(learner["loss_behaviour"])
    # That burst came after the last update, so the ratio ends below its target of 8.
    assert 6.0 <= learner["samples_per_insert"] <= 8.0
    [evaluation] = [row for row in rows if row["role"] == "evaluator"]
    assert evaluation["eval_episodes"] == 1
    best = load_best(RunDir(tmp_path / algorithm).best, state.params)
    assert best is not None and best.frames == evaluation["frames"]
    assert_same(best.params, dict(state.params))
    returns = [row for row in rows if "episode_return" in row]
    assert returns and all(row["episode_frames"] <= 400 for row in returns)


@pytest.mark.parametrize("frames", [1600, 2404])
def test_a_run_ends_within_a_percent_of_the_frames_asked_for(tmp_path, frames):
    # Items of four transitions, and parameters published long before and after the end.
    config = tiny_config(updates_per_dispatch=4, publish_period_updates=1000)
    config = dataclasses.replace(config, frames=frames)
    _, rows = train(config, tmp_path)
    learner = [row for row in rows if row["role"] == "learner"][-1]
    assert frames <= learner["frames"] <= 1.01 * frames
    assert [row["frames"] for row in rows if row["role"] == "evaluator"] == [learner["frames"]]


def test_the_same_seed_gives_the_same_parameters_and_another_seed_others(tmp_path):
    config = tiny_config()
    first, first_rows = train(config, tmp_path / "first")
    second, second_rows = train(config, tmp_path / "second")
    assert_same(first, second)
    scores = [
        [r["eval_return"] for r in rows if "eval_return" in r] for rows in (first_rows, second_rows)
    ]
    assert scores[0] == scores[1]
    other, _ = train(dataclasses.replace(config, seed=2), tmp_path / "other")
    with pytest.raises(AssertionError):
        assert_same(first.params, other.params)


class Crash(Exception):
    """Stands for a kill: nothing is saved after it."""


def interrupt(system, after_writes, *, how):
    """Stops or crashes a system after so many writes to its replay."""
    write, writes = system._replay.write, 0

    def counting(*args):
        nonlocal writes
        write(*args)
        writes += 1
        if writes == after_writes and how == "crash":
            raise Crash
        if writes == after_writes:
            system.request_stop()

    system._replay.write = counting


def train_with_interruptions(config, folder, points):
    run_dir = RunDir(folder)
    run_dir.create(config)
    for after_writes, how in points:
        system = make_system(config, run_dir)
        interrupt(system, after_writes, how=how)
        try:
            system.run()
        except Crash:
            continue
    return make_system(config, run_dir).run()


@pytest.fixture(scope="module")
def resumable(tmp_path_factory):
    """A config with evaluations in mid-run, and the parameters it ends with undisturbed."""
    config = tiny_config(checkpoint_seconds=0.3)  # so that a crash finds checkpoints of any age
    config = dataclasses.replace(
        config, evaluator=dataclasses.replace(config.evaluator, eval_period_frames=1000)
    )
    return config, train(config, tmp_path_factory.mktemp("undisturbed") / "run")[0]


# A run makes about 420 writes: 400 steps, and the ends of episodes.
POINTS = st.tuples(st.integers(1, 450), st.sampled_from(["stop", "crash"]))


@hypothesis.settings(max_examples=2, deadline=None, derandomize=True)
@hypothesis.given(points=st.lists(POINTS, min_size=1, max_size=2))
@hypothesis.example(points=[(1, "stop"), (203, "stop")])
def test_an_interrupted_run_ends_with_the_same_parameters(tmp_path_factory, resumable, points):
    config, expected = resumable
    folder = tmp_path_factory.mktemp("interrupted") / "run"
    assert_same(train_with_interruptions(config, folder, points), expected)


def test_a_finished_run_may_be_made_longer(tmp_path):
    config = tiny_config()
    finished, _ = train(config, tmp_path)
    assert_same(make_system(config, RunDir(tmp_path)).run(), finished)  # nothing left to do
    longer = make_system(dataclasses.replace(config, frames=3200), RunDir(tmp_path))
    assert_same(longer._state, finished)
    assert int(longer.run().updates) > int(finished.updates)


def test_a_serial_run_does_not_resume_with_other_games(tmp_path):
    config = tiny_config()
    train(config, tmp_path)
    more = dataclasses.replace(config, actor=dataclasses.replace(config.actor, envs_per_actor=3))
    with pytest.raises(InputError, match="envs_per_actor=3: the run was stored with"):
        make_system(more, RunDir(tmp_path))


def test_a_stop_request_ends_the_run_with_a_checkpoint(tmp_path):
    config = tiny_config()
    run_dir = RunDir(tmp_path)
    run_dir.create(config)
    system = make_system(config, run_dir)
    system.request_stop()
    state = system.run()
    assert int(state.updates) == 0
    assert list(run_dir.checkpoints.glob("checkpoint-*.npz"))
