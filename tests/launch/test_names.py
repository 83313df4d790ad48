"""Algorithms and networks by name: what is refused, and how a name looks in file names."""

import dataclasses
import sys

import pytest

from launch import names
from launch.cli import main as cli
from launch.config import Config, default_run_dir
from launch.errors import InputError
from launch.run_dir import RunDir
from tests.launch.tiny_run import tiny_config

MODULE = """
from learner.losses import QLearning

class Fine(QLearning):
    pass

class Unshaped(QLearning):
    def errors(self, online_tm1, a_tm1, backup):
        return backup

class Unfinished:
    value_head = True
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a module in it that nothing else finds."""
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    return tmp_path


def test_a_class_of_the_current_folder_is_found(folder):
    assert type(names.find_loss("own_module:Fine")).__name__ == "Fine"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--algorithm", "sarsa"], "algorithm='sarsa' is none of va, "),
        (["--algorithm", "no_module:Fine"], "No module named 'no_module'"),
        (["--algorithm", "own_module:Nothing"], "there is no Nothing in "),
        (["--algorithm", "own_module:Unfinished"], "has no behavior_head, "),
        (["--algorithm", "own_module:Unshaped"], "errors must return Errors"),
        (["--network", "resnet"], "network='resnet' is none of "),
        (["--network", "own_module:Fine"], "network='own_module:Fine' has no "),
    ],
)
@pytest.mark.parametrize("command", ["train", "suite", "profile"])
def test_a_name_that_leads_nowhere_is_refused_in_one_line(folder, capsys, command, flags, said):
    assert cli.run([command, "--", *flags] if command == "suite" else [command, *flags]) == 2
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1
    assert {path.name for path in folder.iterdir()} <= {"own_module.py", "__pycache__"}


def test_a_run_whose_module_is_gone_is_refused_in_one_line(tmp_path, capsys):
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(tiny_config(algorithm="gone_module:Loss"))
    for args in (["eval"], ["watch", "--out", str(tmp_path / "a.gif")]):
        assert cli.run([args[0], str(run_dir.root), *args[1:]]) == 2
        message = capsys.readouterr().err
        assert "No module named 'gone_module'" in message and message.count("\n") == 1
    resumed = ["train", "--resume", "--run-dir", str(run_dir.root)]
    assert cli.run(resumed) == 2
    assert "No module named 'gone_module'" in capsys.readouterr().err


def test_a_run_of_an_unknown_name_can_still_be_looked_at(tmp_path, capsys):
    """Its status needs no algorithm; what needs one says that there is none."""
    run_dir = RunDir(tmp_path)
    run_dir.create(tiny_config(algorithm="sarsa"))
    assert cli.run(["status", str(tmp_path)]) == 0
    with pytest.raises(InputError, match="algorithm='sarsa' is none of"):
        names.find_loss(run_dir.load_config().learner.algorithm)


def test_file_names_hold_no_colon():
    learner = dataclasses.replace(Config().learner, algorithm="my.module:MyLoss")
    config = dataclasses.replace(Config(), learner=learner)
    assert str(default_run_dir(config, "now")) == "runs/pong-my.module.MyLoss-now"
