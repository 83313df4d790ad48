"""Serial runs: every algorithm trains, and a seed decides everything."""

import dataclasses

import jax
import numpy as np
import pytest
from tiny_run import tiny_config

from launch.run_dir import RunDir
from launch.serial import SerialSystem
from report.metrics_file import read_rows


def train(config, folder):
    run_dir = RunDir(folder)
    run_dir.create(config)
    return SerialSystem(config, run_dir).run(), list(read_rows(run_dir.metrics_file))


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize("algorithm", ["va", "behavior_dueling", "dueling", "q"])
def test_every_algorithm_trains_by_changing_one_flag(tmp_path, algorithm):
    config = tiny_config(algorithm=algorithm)
    state, rows = train(config, tmp_path / algorithm)
    # 400 agent steps, 200 of them warm-up, then an update every 4. The end is seen at a publish,
    # and episodes cut off together bring their last items in one burst: 40 to 50 updates.
    assert int(state.updates) in (40, 50)
    learner = [row for row in rows if row["role"] == "learner"][-1]
    assert learner["frames"] >= config.frames
    assert np.isfinite(learner["loss"]) and np.isfinite(learner["loss_behaviour"])
    # That burst came after the last update, so the ratio ends below its target of 8.
    assert 6.0 <= learner["samples_per_insert"] <= 8.0
    [evaluation] = [row for row in rows if row["role"] == "evaluator"]
    assert evaluation["eval_episodes"] == 1
    returns = [row for row in rows if "episode_return" in row]
    assert returns and all(row["episode_frames"] <= 400 for row in returns)


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


def test_a_stopped_run_resumes_with_its_counters_and_optimizer(tmp_path):
    config = tiny_config()
    run_dir = RunDir(tmp_path)
    run_dir.create(config)
    stopped, _ = train(config, tmp_path)
    longer = dataclasses.replace(config, frames=3200)
    resumed = SerialSystem(longer, run_dir)
    assert_same(resumed._state, stopped)
    assert resumed._steps.total == 400
    final = resumed.run()
    assert int(final.updates) > int(stopped.updates)


def test_a_stop_request_ends_the_run_with_a_checkpoint(tmp_path):
    config = tiny_config()
    run_dir = RunDir(tmp_path)
    run_dir.create(config)
    system = SerialSystem(config, run_dir)
    system.request_stop()
    state = system.run()
    assert int(state.updates) == 0
    assert list(run_dir.checkpoints.glob("checkpoint-*.npz"))
