"""The program under stock Launchpad: all nodes as threads of this process."""

import dataclasses
import json
import shutil

import jax
import launchpad as lp
import numpy as np
import pytest
from absl.testing import absltest

from launch.config import Config
from launch.engines.claim import claim, config_to_resume
from launch.layout import program_layout
from launch.nodes import learner
from launch.program import make_program
from launch.run_dir import RunDir
from learner.loop import run_learner
from report.metrics_file import read_rows
from tests.launch.tiny_run import tiny_config


def launch(config: Config, run_dir: RunDir) -> None:
    """Runs the program until learner and evaluator are done."""
    case = absltest.TestCase()  # Launchpad hangs its clean-up on one
    program = make_program(config, run_dir.root)
    try:
        lp.launch(program, launch_type="test_mt", test_case=case).wait(["learner", "evaluator"])
    finally:
        case.doCleanups()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a run that has come to its end; epsilon was to fall over a longer one."""
    config = tiny_config()
    actor = dataclasses.replace(config.actor, epsilon_decay_frames=None)
    config = dataclasses.replace(config, actor=actor, schedule_frames=400_000)
    run_dir = RunDir(tmp_path_factory.mktemp("trained") / "run")
    run_dir.create(config)
    launch(config, run_dir)
    return run_dir


@pytest.mark.parametrize("colocate", [False, True])
def test_the_program_has_the_groups_of_the_layout(tmp_path, colocate):
    config = tiny_config()
    config = dataclasses.replace(
        config, replay=dataclasses.replace(config.replay, colocate=colocate)
    )
    groups = make_program(config, tmp_path).groups
    assert {name: len(nodes) for name, nodes in groups.items()} == program_layout(config)


def test_the_program_trains_under_stock_launchpad(trained):
    config = trained.load_config()
    rows = list(read_rows(trained.metrics_file))
    assert {row["role"] for row in rows} == {
        "learner",
        "actor/0",
        "actor/1",
        "evaluator",
        "replay",
    }
    last = [row for row in rows if row["role"] == "learner"][-1]
    assert last["frames"] >= config.frames and last["updates"] > 0
    assert list(trained.checkpoints.glob("checkpoint-*.npz"))
    assert list(trained.root.glob("events.out.*"))


def newest_checkpoint(run_dir: RunDir) -> dict[str, np.ndarray]:
    with np.load(max(run_dir.checkpoints.glob("checkpoint-*.npz"))) as stored:
        return dict(stored)


def counters(checkpoint: dict[str, np.ndarray]) -> dict[str, int]:
    return json.loads(checkpoint["__meta__"].tobytes())["counters"]


def test_a_run_goes_on_elsewhere_with_more_actors_exactly_where_it_was(
    trained, tmp_path, monkeypatch
):
    run_dir = RunDir(tmp_path / "moved")
    shutil.copytree(trained.root, run_dir.root)
    before = newest_checkpoint(run_dir)
    config = config_to_resume(run_dir.root)
    actor = dataclasses.replace(config.actor, actors=3, envs_per_actor=3)
    config = dataclasses.replace(config, actor=actor, frames=2 * config.frames)
    begun_with = []

    def spy(**options):
        # Copies, before the first update takes over the buffers.
        begun_with.append(jax.device_get((options["state"], dataclasses.asdict(options["steps"]))))
        return run_learner(**options)

    monkeypatch.setattr(learner, "run_learner", spy)
    with claim(run_dir, config, resume=True):
        launch(config, run_dir)

    # Parameters, target network, optimizer and counters are those of the checkpoint.
    [(state, steps)] = begun_with
    leaves = {
        jax.tree_util.keystr(path): leaf
        for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]
    }
    assert leaves.keys() == before.keys() - {"__meta__"}
    for name, leaf in leaves.items():
        np.testing.assert_array_equal(leaf, before[name], name)
    was = counters(before)
    assert steps == {"total": was["steps"], "last_inserts": was["last_inserts"]}

    # Every step was counted once, whoever played it, and each sampled as often as before.
    is_now = counters(newest_checkpoint(run_dir))
    assert is_now["steps"] == is_now["last_inserts"] >= config.total_steps
    rows = [row for row in read_rows(run_dir.metrics_file) if row["frames"] >= 4 * was["steps"]]
    assert {"actor/0", "actor/1", "actor/2"} <= {row["role"] for row in rows}
    last = [row for row in rows if row["role"] == "learner"][-1]
    assert last["samples_per_insert"] == pytest.approx(8.0, rel=0.2)
    # Epsilon goes on falling as it began to: to 0.05 over 2 % of 400,000 frames.
    epsilons = [(row["frames"], row["epsilon"]) for row in rows if "epsilon" in row]
    assert epsilons
    for frames, epsilon in epsilons:
        assert epsilon == pytest.approx(1.0 - 0.95 * min(frames / 8000, 1.0))
