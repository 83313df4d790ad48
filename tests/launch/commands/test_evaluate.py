"""`vantage eval`: a checkpoint, scored."""

import dataclasses
import json

import numpy as np
import pytest

from launch import build
from launch.cli import main as cli
from launch.commands.evaluate import mean_interval
from launch.run_dir import RunDir
from launch.stored.best_params import BestKeeper
from learner.acting import acting_params
from tests.launch.tiny_run import tiny_config


def test_an_evaluation_is_raw_and_normalized_with_intervals(scored_run, capsys):
    assert cli.run(["eval", str(scored_run), "--episodes", "3", "--epsilon", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["frames"], len(found["returns"])) == (1600, 3)
    raw, normalized = found["return"], found["human_normalized"]
    assert raw["mean"] == pytest.approx(np.mean(found["returns"]))
    assert raw["low"] <= raw["mean"] <= raw["high"]
    assert normalized["mean"] == pytest.approx((raw["mean"] + 20.7) / (14.6 + 20.7))


def test_an_evaluation_can_be_read_by_people(scored_run, capsys):
    assert cli.run(["eval", str(scored_run), "--episodes", "1"]) == 0
    said = capsys.readouterr().out
    assert "va on pong, 1,600 frames" in said and "one episode: no interval" in said


def test_the_interval_of_a_mean_is_that_of_a_normal_one_for_many_episodes():
    returns = np.random.default_rng(0).normal(5.0, 2.0, 400)
    found = mean_interval(returns, seed=0)
    half = 1.96 * returns.std(ddof=1) / np.sqrt(400)
    assert found.mean == pytest.approx(returns.mean())
    assert found.low == pytest.approx(found.mean - half, abs=0.02)
    assert found.high == pytest.approx(found.mean + half, abs=0.02)
    assert mean_interval(np.full(5, 3.0), seed=0) == (3.0, 3.0, 3.0)


def test_the_best_the_newest_or_one_checkpoint_is_scored(scored_run, capsys):
    config = RunDir(scored_run).load_config()
    state, _ = build.make_learner(config)
    BestKeeper(RunDir(scored_run).best).offer(acting_params(state.params), frames=800, score=-3.0)
    frames = {}
    for which in ("best", "newest", "0"):
        args = ["eval", str(scored_run), "--episodes", "1", "--json", "--checkpoint", which]
        assert cli.run(args) == 0
        frames[which] = json.loads(capsys.readouterr().out)["frames"]
    assert frames == {"best": 800, "newest": 1600, "0": 1600}


def test_a_folder_with_its_best_alone_is_scored(tmp_path, capsys):
    config = tiny_config()
    RunDir(tmp_path / "agent").create(config)
    params = build.empty_params(config)
    BestKeeper(RunDir(tmp_path / "agent").best).offer(params, frames=800, score=-3.0)
    assert cli.run(["eval", str(tmp_path / "agent"), "--episodes", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["frames"], found["updates"], found["sticky_actions"]) == (800, None, 0.0)


def test_a_checkpoint_that_is_not_there_is_refused(scored_run, tmp_path, refuse):
    run = str(scored_run)
    assert "checkpoint='last' is neither newest nor best" in refuse(
        "eval", run, "--checkpoint", "last"
    )
    assert "has no checkpoint 7; it has 0" in refuse("eval", run, "--checkpoint", "7")
    RunDir(tmp_path / "run").create(tiny_config())
    assert "has no best checkpoint yet" in refuse(
        "eval", str(tmp_path / "run"), "--checkpoint", "best"
    )


def test_bad_input_is_refused_in_one_line(scored_run, tmp_path, refuse):
    assert "episodes=0" in refuse("eval", str(scored_run), "--episodes", "0")
    assert "epsilon=2.0" in refuse("eval", str(scored_run), "--epsilon", "2")
    assert "not a run directory" in refuse("eval", str(tmp_path))


def test_a_run_without_a_checkpoint_is_refused(tmp_path, refuse):
    RunDir(tmp_path / "run").create(dataclasses.replace(tiny_config(), seed=3))
    assert "holds no checkpoint yet" in refuse("eval", str(tmp_path / "run"))
