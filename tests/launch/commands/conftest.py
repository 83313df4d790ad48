"""A run to score and to watch."""

import pytest

from launch import build
from launch.learner_state import save
from launch.run_dir import RunDir
from learner.checkpoint import Checkpointer
from learner.divergence import FiniteGuard
from learner.step_counter import StepCounter
from tests.launch.tiny_run import tiny_config


@pytest.fixture(scope="module")
def scored_run(tmp_path_factory):
    """A run directory with a checkpoint of untrained parameters."""
    run_dir = RunDir(tmp_path_factory.mktemp("runs") / "run")
    config = tiny_config()
    run_dir.create(config)
    state, _ = build.make_learner(config)
    steps = StepCounter(total=400, last_inserts=400)
    save(Checkpointer(run_dir.checkpoints), FiniteGuard(), state, steps)
    return run_dir.root
