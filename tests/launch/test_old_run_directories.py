"""Run directories of earlier versions, and of the other Python's stack: scored and continued."""

import json
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

from launch.cli import main as cli
from launch.invocation import vantage_command
from report.metrics_file import read_rows

ROOT = pathlib.Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
WAIT_SECONDS = 400.0  # bounds a hang
UPDATES = 200  # made by either stored run
# Of Reverb 0.7.2 on Python 3.10, and of Reverb 0.14.0 on 3.11.
RUNS = ("run_of_0.1.0", "older_run_on_3.11")


def vantage(*args: str) -> None:
    done = subprocess.run(
        vantage_command(*args),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def copy_of(tmp_path):
    """A stored run, copied to where it may be continued."""

    def copy(name: str) -> pathlib.Path:
        run = tmp_path / name
        shutil.copytree(FIXTURES / name, run)
        run.chmod(0o700)
        return run

    return copy


def stored_arrays(run: pathlib.Path) -> dict[str, np.ndarray]:
    """What the newest checkpoint of a run holds."""
    path = max((run / "checkpoints").iterdir())
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


@pytest.mark.parametrize("name", RUNS)
def test_a_stored_run_is_continued_with_its_counters_and_a_replay_that_fills_anew(copy_of, name):
    run = copy_of(name)
    stored_rows = list(read_rows(run / "metrics.jsonl"))
    stored = stored_arrays(run)
    vantage("train", "--run-dir", str(run), "--resume", "--frames=7000")
    rows = list(read_rows(run / "metrics.jsonl"))[len(stored_rows) :]
    learner = [row for row in rows if row["role"] == "learner"]
    assert learner[0]["updates"] >= UPDATES
    # Its items had another layout: they were set aside, and replay counts from zero. The run's
    # own count goes on where it was, neither back nor ahead of what was played.
    assert (run / "replay.other_layout" / "DONE").exists()
    assert "another layout" in (run / "logs" / "replay-0.log").read_text()
    before = max(row["frames"] for row in stored_rows if row["role"] == "learner")
    frames = [row["frames"] for row in learner]
    assert frames == sorted(frames)
    assert before <= frames[0] and frames[-1] >= 7000
    inserts = max(row["inserts"] for row in rows if "inserts" in row)
    assert frames[-1] - before <= 4 * inserts
    assert sum(row["rejected_items"] for row in learner) == 0
    continued = stored_arrays(run)
    assert {name: a.shape for name, a in continued.items() if "params" in name} == {
        name: a.shape for name, a in stored.items() if "params" in name
    }


@pytest.mark.parametrize("name", RUNS)
def test_a_stored_run_is_scored(copy_of, capsys, name):
    assert cli.run(["eval", str(copy_of(name)), "--episodes=1", "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert scored["updates"] == UPDATES
    assert len(scored["returns"]) == 1


def test_an_old_serial_run_is_continued_where_it_was(copy_of):
    run = copy_of("serial_run_of_0.1.0")
    (before,) = (run / "checkpoints").iterdir()
    assert cli.run(["train", "--serial", "--run-dir", str(run), "--resume", "--frames=4000"]) == 0
    (after,) = (run / "checkpoints").iterdir()
    assert after.name > before.name
