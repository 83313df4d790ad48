"""The public face, as its users have it: the page's script and the notebook, from other folders."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import vantage
from launch.errors import ExitCode
from launch.versions import VERSION
from report.metrics_file import MetricsFile
from tests.launch.tiny_run import tiny_config

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
WAIT_SECONDS = 400.0  # bounds a hang
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


def run_script(text: str, folder: pathlib.Path) -> str:
    """What a script prints that knows the packages as an install knows them."""
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_script_of_the_page_runs_in_any_folder(tmp_path):
    page = (DOCS / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    said = run_script("\n".join(blocks), tmp_path)
    assert re.search(r"returns \[.* after \d{4,} frames", said)
    assert re.search(r"last: V -?\d\.\d+, A \[.*\], mu \[", said)
    assert "'learner': 1" in said and "'actor': 2" in said
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "by_other_means",
        "first",
    ]


def test_the_notebook_runs_from_its_first_cell_to_its_last():
    notebook = json.loads((DOCS / "tour.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    text = "\n".join(cells)
    for long, short in (
        ("frames=40_000", "frames=4_000"),
        ("warmup_steps=2_000", "warmup_steps=500"),
        ("max_episode_frames=4_000", "max_episode_frames=1_000"),
        ("eval_episodes=2,", "eval_episodes=1,"),
        ("play(episodes=2)", "play(episodes=1)"),
    ):
        assert text.count(long) == 1
        text = text.replace(long, short)
    # Where a notebook server starts it: in its own folder.
    said = run_script(text, DOCS)
    assert "mean return" in said


def test_everything_public_is_there_and_documented():
    public = {name: getattr(vantage, name) for name in vantage.__all__}
    assert all(found.__doc__ for found in public.values() if callable(found))
    assert vantage.__version__ == VERSION


def test_a_run_is_continued_with_its_schedules_and_signals_are_the_callers_again(tmp_path):
    before = [signal.getsignal(number) for number in SIGNALS]
    config = tiny_config()
    run = vantage.train(config, tmp_path / "run", serial=True)
    first = vantage.load(run).frames
    longer = dataclasses.replace(config, frames=2 * config.frames)
    assert vantage.train(longer, run, resume=True, serial=True) == run
    agent = vantage.load(run)
    assert agent.frames >= longer.frames > first
    assert agent.config.schedule_frames == config.frames
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (ExitCode.INTERRUPTED, KeyboardInterrupt),
        (ExitCode.FAILED, vantage.TrainingError),
        (ExitCode.COME_BACK, vantage.TrainingError),
    ],
)
def test_a_run_that_ends_before_its_time_raises(tmp_path, monkeypatch, code, raised):
    monkeypatch.setattr("vantage.training.train_locally", lambda *args: code)
    with pytest.raises(raised, match=str(tmp_path)):
        vantage.train(tiny_config(), tmp_path / "run")


def test_a_config_is_made_by_the_names_of_flags():
    config = vantage.make_config("paper", game="MsPacman", n_step=3, seed=7)
    assert (config.environment.game, config.learner.n_step, config.seed) == ("ms_pacman", 3, 7)
    assert config.replay == vantage.PRESETS["paper"].replay
    assert vantage.make_config() == vantage.PRESETS["cpu"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"lr": 1e-4}, "unknown setting 'lr'; did you mean learning_rate"),
        ({"learner": 3}, "unknown setting 'learner'"),
        ({"n_step": 0}, "n_step=0 must be at least 1"),
        ({"n_step": "three"}, "n_step='three' is not of the right kind"),
        ({"game": "pongg"}, "did you mean pong"),
        ({"preset": "gpu"}, "preset='gpu' is none of paper, cpu"),
        ({"frames": 400}, "nothing would be learned"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_one_line(settings, said):
    with pytest.raises(vantage.InputError, match=re.escape(said)) as refusal:
        vantage.make_config(**settings)
    assert "\n" not in str(refusal.value)


def test_metrics_are_columns_of_one_length(tmp_path):
    MetricsFile(tmp_path / "metrics.jsonl").append(
        [
            {"time": 1.0, "role": "actor/0", "frames": 4, "episode_return": -3.0},
            {"time": 2.0, "role": "learner", "frames": 8, "loss": 0.5},
            {"time": 3.0, "role": "actor/10", "frames": 12},
        ]
    )
    columns = vantage.read_metrics(tmp_path)
    assert list(columns) == ["time", "role", "frames", "episode_return", "loss"]
    np.testing.assert_array_equal(columns["episode_return"], [-3.0, np.nan, np.nan])
    assert columns["role"].tolist() == ["actor/0", "learner", "actor/10"]
    assert vantage.read_metrics(tmp_path, "actor")["frames"].tolist() == [4.0, 12.0]
    assert vantage.read_metrics(tmp_path, "actor/1") == {}
    with pytest.raises(vantage.InputError, match=r"has no metrics\.jsonl"):
        vantage.read_metrics(tmp_path / "none")


def test_what_is_no_run_is_not_loaded(tmp_path):
    with pytest.raises(vantage.InputError, match="not a run directory"):
        vantage.load(tmp_path)
