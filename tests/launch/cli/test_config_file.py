"""--config FILE: a run's config.json or a TOML file, below the flags that are given."""

import dataclasses
import json

import pytest

from launch.cli import main as cli
from launch.cli.argv import parse_train
from launch.config import PRESETS
from launch.run_dir import RunDir

TOML = """
game = "MsPacman"
frames = "60M"
learning_rate = 3e-4
prioritized = true
normalize = false
epsilon_decay_frames = "None"
preset = "paper"
"""


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    return str(path)


def test_a_toml_file_has_the_names_of_flags_and_flags_override_it(toml):
    config = parse_train(["--config", toml, "--learning-rate", "1e-4"]).config
    assert config.environment.game == "ms_pacman"
    assert (config.frames, config.learner.learning_rate) == (60_000_000, 1e-4)
    assert config.replay.prioritized and not config.learner.normalize
    assert config.learner.optimizer == "rmsprop"  # of the preset that the file names
    flags = [f"--config={toml}", "--preset", "cpu", "--no-prioritized"]
    config = parse_train(flags).config
    assert config.learner.optimizer == "adam" and not config.replay.prioritized


def test_a_runs_config_makes_the_same_run_again(tmp_path):
    cpu = PRESETS["cpu"]
    learner = dataclasses.replace(cpu.learner, max_grad_norm=10.0, optimizer_epsilon=1 / 3)
    actor = dataclasses.replace(cpu.actor, actors=7)
    config = dataclasses.replace(cpu, learner=learner, actor=actor, seed=5)
    RunDir(tmp_path / "run").create(config.with_schedule())
    path = str(tmp_path / "run" / "config.json")
    assert parse_train(["--config", path]).config == config
    assert parse_train(["--seed=6", "--config", path]).config == dataclasses.replace(config, seed=6)
    resumed = parse_train(["--resume", "--run-dir", str(tmp_path / "run"), "--config", path])
    assert resumed.config == config.with_schedule()


def test_a_dry_run_can_be_run(tmp_path, capsys):
    flags = ["--game", "breakout", "--n-step", "3", "--run-dir", str(tmp_path / "run")]
    assert cli.run(["train", "--dry-run", *flags]) == 0
    (tmp_path / "plan.json").write_text(capsys.readouterr().out)
    config = parse_train(["--config", str(tmp_path / "plan.json")]).config
    assert config == parse_train(flags).config


def test_the_actors_of_a_run_do_not_count_where_hosts_have_their_own(tmp_path, capsys):
    RunDir(tmp_path / "run").create(PRESETS["cpu"])
    path = str(tmp_path / "run" / "config.json")
    flags = ["--run-dir", str(tmp_path / "new"), "--dry-run", "--actor-hosts", "3"]
    assert cli.run(["train", "--config", path, "--engine", "hosts", *flags]) == 0
    assert '"actors": 6' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr = 1e-4", "unknown key 'lr'; did you mean learning_rate"),
        ("speed_of_light = 1", "unknown key 'speed_of_light'; keys are the names of flags"),
        ("resume = true", "'resume' belongs on the command line"),
        ("frames = 'many'", "--frames: 'many' is not a whole number"),
        ("frames = true", "frames=True should be a number or a text"),
        ("prioritized = 1", "prioritized=1 should be true or false"),
        ("games = ['pong']", "unknown key 'games'; did you mean game?"),
        ("game = ['pong']", "game is a list"),
        ("[learner]\nn_step = 3", "unknown key 'learner'"),
        ("game = ", "Invalid value"),
        ("account = 'lab'", "--account needs --engine slurm"),
        ("n_step = 0", "n_step=0 must be at least 1"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(refuse, tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text(text)
    assert said in refuse("train", "--config", "bad.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


def test_what_is_no_such_file_is_refused_by_name(refuse, tmp_path):
    path = tmp_path / "config.json"
    assert f"--config '{path}' cannot be read: No such file" in refuse(
        "train", "--config", str(path)
    )
    path.write_text("[1]")
    assert "neither a run's config.json nor" in refuse("train", "--config", str(path))
    path.write_text(json.dumps({"config": {"frames": -1}}))
    assert f"--config '{path}': config" in refuse("profile", "--config", str(path))
    RunDir(tmp_path / "run").create(PRESETS["cpu"])
    stored = str(tmp_path / "run" / "config.json")
    assert "--preset has no effect" in refuse("train", "--preset=cpu", "--config", stored)
