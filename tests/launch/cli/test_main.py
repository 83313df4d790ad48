"""The table of commands: what each takes is what its flags give."""

import importlib
import inspect
import subprocess

import pytest

from launch.cli import entry
from launch.cli import main as cli
from launch.cli.main import COMMANDS
from launch.invocation import vantage_command
from launch.versions import VERSION

PLAIN = [name for name, command in COMMANDS.items() if command.read is None]


@pytest.mark.parametrize("name", PLAIN)
def test_a_command_takes_its_flags(name):
    command = COMMANDS[name]
    module, _, function = command.function.partition(":")
    called = getattr(importlib.import_module(module), function)
    required = {
        name: parameter
        for name, parameter in inspect.signature(called).parameters.items()
        if parameter.default is parameter.empty
    }
    assert list(required) == list(command.flags.__dataclass_fields__)


def test_python_m_launch_is_the_command_too():
    command = vantage_command("status", "nowhere")
    assert command[1:3] == ["-m", "launch"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "vantage: error: 'nowhere' is not a run directory: no config.json in it\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_says_what_it_does(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        COMMANDS[name].run(name, ["--help"])
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    assert f"vantage {name}" in said


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("trian", "unknown command 'trian'; did you mean train?"),
        ("evaluate", "did you mean eval?"),
        ("juggle", "choose from train, tabular, profile, list, status"),
        ("--game", "write vantage COMMAND --game"),
    ],
)
def test_an_unknown_command_is_told_which_there_are(refuse, word, said):
    assert said in refuse(word)
    if not word.startswith("-"):
        assert said in refuse("help", word)


def test_help_of_a_command_can_be_asked_for_before_it(capsys):
    with pytest.raises(SystemExit):
        cli.run(["help", "train"])
    assert "usage: vantage train" in capsys.readouterr().out
    assert cli.run(["help"]) == 0
    assert "usage: vantage {train," in capsys.readouterr().out


def test_the_version_is_said(capsys):
    assert entry.run(["--version"]) == 0
    assert capsys.readouterr().out == f"vantage {VERSION}\n"


def test_no_command_prints_the_usage_and_fails(capsys):
    assert cli.run([]) == 2
    assert "usage: vantage" in capsys.readouterr().out
