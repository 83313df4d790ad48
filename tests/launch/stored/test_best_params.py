"""The best parameters: kept as a whole, never for worse ones, over restarts and damage."""

import logging

import numpy as np
import pytest

from launch.stored.best_params import BestKeeper, load_best
from launch.stored.candidate import CandidateWriter, load_candidate
from launch.stored.params_file import params_file
from learner.checkpoint import CheckpointError


def params(value):
    return {"torso": {"w": np.full((2, 3), value, np.float32)}}


def best_of(folder):
    best = load_best(folder, params(0.0))
    return (
        None if best is None else (best.frames, best.score, float(best.params["torso"]["w"][0, 0]))
    )


def test_the_best_is_never_replaced_by_a_worse_one(tmp_path):
    keeper = BestKeeper(tmp_path)
    assert best_of(tmp_path) is None
    for frames, score in ((100, -20.0), (200, 3.0), (300, 1.0)):
        keeper.offer(params(frames), frames=frames, score=score)
    assert best_of(tmp_path) == (200, 3.0, 200.0)
    keeper.offer(params(400), frames=400, score=3.0)
    assert best_of(tmp_path) == (400, 3.0, 400.0)


def test_the_best_outlives_a_restart(tmp_path):
    BestKeeper(tmp_path).offer(params(1), frames=100, score=5.0)
    (tmp_path / "tmpabc.tmp").write_bytes(b"half of it")
    BestKeeper(tmp_path).offer(params(2), frames=200, score=4.0)
    assert best_of(tmp_path) == (100, 5.0, 1.0)
    assert list(tmp_path.iterdir()) == [params_file(tmp_path)]


def test_damage_is_said_and_the_next_evaluation_replaces_it(tmp_path, caplog):
    params_file(tmp_path).write_bytes(b"no archive")
    with pytest.raises(CheckpointError, match=r"params\.npz is damaged"):
        load_best(tmp_path, params(0.0))
    with caplog.at_level(logging.ERROR):
        BestKeeper(tmp_path).offer(params(7), frames=700, score=-21.0)
    assert "the next evaluation replaces it" in caplog.text
    assert best_of(tmp_path) == (700, -21.0, 7.0)


def test_the_best_of_an_earlier_version_has_what_acts_and_is_read_and_replaced(tmp_path):
    whole = {**params(3), "value": {"w": np.ones(2, np.float32)}}
    BestKeeper(tmp_path).offer(params(1), frames=100, score=5.0)
    best = load_best(tmp_path, whole)
    assert best is not None and best.params.keys() == {"torso"}
    keeper = BestKeeper(tmp_path)
    keeper.offer(whole, frames=200, score=4.0)
    assert best_of(tmp_path) == (100, 5.0, 1.0)
    keeper.offer(whole, frames=300, score=6.0)
    best = load_best(tmp_path, whole)
    assert best is not None and best.params.keys() == {"torso", "value"}
    with pytest.raises(CheckpointError, match="in only one of"):
        load_best(tmp_path, {**whole, "behaviour": {"w": np.ones(2, np.float32)}})


def test_a_candidate_is_due_every_period_and_at_the_end(tmp_path):
    writer = CandidateWriter(tmp_path / "candidate", period_frames=100)
    assert load_candidate(tmp_path / "candidate", params(0)) is None
    assert writer.is_due(0, finished=False)
    writer.write(params(7), 30)
    assert not writer.is_due(99, finished=False)
    assert writer.is_due(100, finished=False) and writer.is_due(99, finished=True)
    candidate = load_candidate(tmp_path / "candidate", params(0))
    assert candidate is not None and candidate.frames == 30
    np.testing.assert_array_equal(candidate.params["torso"]["w"], params(7)["torso"]["w"])


def test_a_candidate_that_cannot_be_written_or_read_is_done_without(tmp_path, caplog):
    writer = CandidateWriter(tmp_path / "gone" / "candidate", period_frames=100)
    writer.write(params(7), 100)
    assert "cannot be written" in caplog.text and not writer.is_due(199, finished=False)
    (tmp_path / "params.npz").write_bytes(b"no archive")
    assert load_candidate(tmp_path, params(0)) is None
    assert "cannot be used" in caplog.text
