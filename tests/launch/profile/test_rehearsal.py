"""A rehearsal is the whole program on a pretended device, and cannot be trained with."""

import dataclasses
import pathlib
import signal
import subprocess
import sys

import numpy as np

from launch.errors import ExitCode
from launch.profile import timed_run
from launch.profile.command import for_profiling
from launch.profile.recorded_games import RecordedGames
from launch.profile.rehearsal import Pretence, rehearsal_command
from launch.run_dir import RunDir
from report.metrics_file import read_rows
from tests.launch.tiny_run import tiny_config


def test_a_rehearsal_updates_publishes_and_reports_but_saves_nothing(tmp_path) -> None:
    config = for_profiling(tiny_config(checkpoint_seconds=0.5))
    config = dataclasses.replace(
        config,
        replay=dataclasses.replace(config.replay, prioritized=True),
        report_seconds=0.2,
    )
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(config)
    Pretence(5.0, recorded_play=True).save(run_dir)
    output = tmp_path / "output"
    with timed_run._running(rehearsal_command(run_dir), output) as child:
        timed_run._wait_until_learning(run_dir, child, output)
        child.send_signal(signal.SIGINT)  # once, so that it may save
        child.wait(timeout=100.0)
    assert child.returncode == ExitCode.INTERRUPTED, output.read_text()
    rows = list(read_rows(run_dir.metrics_file))
    learner = [row for row in rows if row["role"] == "learner" and row["updates"] > 0]
    assert learner[-1]["params_version"] == learner[-1]["updates"]
    assert {row["loss"] for row in learner if "loss" in row} == {1.0}  # nothing was computed
    assert all(0.0 <= row["data_wait_fraction"] <= 1.0 for row in learner)
    assert any(row["role"].startswith("actor/") for row in rows)
    assert list(run_dir.checkpoints.glob("*")) == []


def test_recorded_games_go_on_for_ever_whatever_is_done() -> None:
    games = RecordedGames(tiny_config(), num_envs=2, seed=1)
    first = games.reset()
    seen = [games.step(np.zeros(2, np.int64)) for _ in range(450)]
    assert first.observation.stack.shape == seen[0].observation.stack.shape == (2, 4, 84, 84)
    assert all((step.step_type == 1).all() and (step.discount == 1.0).all() for step in seen)
    np.testing.assert_array_equal(seen[0].observation.stack, seen[200].observation.stack)


def test_a_run_that_trains_never_loads_what_is_pretended() -> None:
    code = (
        "import sys, launch.commands.train, launch.supervise.node_entry, launch.nodes.learner, "
        "launch.nodes.actor; print(*(name for name in sys.modules if 'launch.profile' in name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=pathlib.Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""
