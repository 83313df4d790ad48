"""The program under stock Launchpad: all nodes as threads of this process."""

import dataclasses

import launchpad as lp
import pytest
from absl.testing import absltest

from launch.layout import program_layout
from launch.program import make_program
from launch.run_dir import RunDir
from launch.supervise.node_entry import RunDirAddress
from report.metrics_file import read_rows
from tests.launch.tiny_run import tiny_config


@pytest.fixture
def launchpad_case():
    """Launchpad hangs its clean-up on an absltest case."""
    case = absltest.TestCase()
    yield case
    case.doCleanups()


@pytest.mark.parametrize("colocate", [False, True])
def test_the_program_has_the_groups_of_the_layout(tmp_path, colocate):
    config = tiny_config()
    config = dataclasses.replace(
        config, replay=dataclasses.replace(config.replay, colocate=colocate)
    )
    groups = make_program(config, tmp_path).groups
    assert {name: len(nodes) for name, nodes in groups.items()} == program_layout(config)


def test_an_address_is_read_late_and_a_move_is_noticed(tmp_path):
    run_dir = RunDir(tmp_path)
    address = RunDirAddress(run_dir)
    assert address.moved_to() is None  # nobody has asked for it yet
    run_dir.publish_address("h1:4000")
    assert address.build() == "h1:4000"
    assert address.moved_to() is None
    run_dir.publish_address("h2:4000")
    assert address.moved_to() == "h2:4000"


def test_the_program_trains_under_stock_launchpad(tmp_path, launchpad_case):
    config = tiny_config()
    run_dir = RunDir(tmp_path)
    run_dir.create(config)
    manager = lp.launch(
        make_program(config, tmp_path), launch_type="test_mt", test_case=launchpad_case
    )
    manager.wait(["learner", "evaluator"])
    launchpad_case.doCleanups()
    rows = list(read_rows(run_dir.metrics_file))
    assert {row["role"] for row in rows} == {
        "learner",
        "actor/0",
        "actor/1",
        "evaluator",
        "replay",
    }
    learner = [row for row in rows if row["role"] == "learner"][-1]
    assert learner["frames"] >= config.frames and learner["updates"] > 0
    assert list(run_dir.checkpoints.glob("checkpoint-*.npz"))
    assert list(run_dir.root.glob("events.out.*"))
