"""`vantage train --serial`, from its first line to its exit code."""

import dataclasses
import json
import shutil

import numpy as np
import psutil
import pytest

from launch import build
from launch.cli import main as cli
from launch.engines.serial.run import train_serially
from launch.errors import ExitCode
from launch.run_dir import RunDir
from learner.divergence import all_finite
from tests.launch.listening import listeners
from tests.launch.monitor.event_files import read_events
from tests.launch.tiny_run import TINY_FLAGS, tiny_config


def test_a_serial_run_says_what_one_in_processes_says(tmp_path, capsys, restored_signals):
    root = tmp_path / "my run"
    flags = [*TINY_FLAGS, "--frames=2400"]
    assert cli.run(["train", "--serial", f"--run-dir={root}", *flags]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "va on pong: 2,400 frames, 2 actors x 4 games, seed 1"
    assert said[2].startswith(f"run directory {root}, replay in this process up to")
    phases = [line.partition(" ")[0] for line in said[3:]]
    assert [*dict.fromkeys(phases)][:4] == ["starting", "filling", "compiling", "training"]
    assert said[-5].startswith("2.4k/2.4k frames 100.0% |") and "eval" in said[-5]
    assert said[-4] == f"finished; see '{root}'"
    assert f"vantage eval '{root}'" in said[-2]
    assert "learner/loss" in read_events(root)

    assert cli.run(["status", str(root), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["state"], status["frames"]) == ("finished", 2400)
    [node] = status["nodes"]
    assert (node["role"], node["state"]) == ("serial", "finished")


@pytest.mark.parametrize("how", ["stop", "gone"])
def test_a_serial_run_listens_on_no_port_and_hears_that_it_is_to_stop(
    tmp_path, capsys, restored_signals, how
):
    config = dataclasses.replace(tiny_config(), frames=10**8)
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(config)
    update = build.make_learner(config)[1]
    this = psutil.Process()
    before, during = listeners([this]), []

    def end(*args):
        during.append(listeners([this, *this.children(recursive=True)]))
        if how == "stop":
            run_dir.stop_file.touch()
        elif run_dir.is_there():
            shutil.rmtree(run_dir.root)
        return update(*args)

    with pytest.MonkeyPatch.context() as patch:
        make_learner = build.make_learner
        patch.setattr(build, "make_learner", lambda config: (make_learner(config)[0], end))
        patch.setattr("launch.engines.serial.host.PERIOD_SECONDS", 0.01)
        code = train_serially(config, run_dir)
    assert during and all(found == before for found in during)
    out, error = capsys.readouterr()
    if how == "stop":
        assert code is ExitCode.DONE and "stopped; continue with" in out
        assert list(run_dir.checkpoints.glob("checkpoint-*.npz"))
        assert json.loads(run_dir.status_file.read_text())["state"] == "stopped"
    else:
        assert code is ExitCode.FAILED and f"'{run_dir.root}' is gone" in out
        assert error.splitlines()[-1].endswith("was deleted or moved while the run was alive")
        assert not run_dir.root.exists()


def test_a_diverged_run_fails_with_the_reason_and_keeps_its_finite_checkpoints(
    tmp_path, capsys, restored_signals
):
    # A checkpoint after every update: one of the last finite state is there, and none after it.
    config = tiny_config(learning_rate=1e25, checkpoint_seconds=1e-6)
    run_dir = RunDir(tmp_path)
    run_dir.create(config)
    assert train_serially(config, run_dir) is ExitCode.FAILED
    line, last = capsys.readouterr().err.splitlines()
    assert "the run failed for good" in last and "--resume" not in last
    assert line.startswith("vantage: error: learning diverged: values are NaN or infinite after")
    assert line.endswith("with a --learning-rate below 1e+25, or with --max-grad-norm")
    checkpoints = sorted(run_dir.checkpoints.iterdir())
    assert checkpoints
    for path in checkpoints:
        with np.load(path) as stored:
            assert all(all_finite(stored[name]) for name in stored.files)
    newest = int(checkpoints[-1].stem.rpartition("-")[2])
    assert f"those of update {newest:,} were finite" in line
