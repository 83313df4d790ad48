"""Completion: all commands and their flags, in the script of every shell."""

import shutil
import subprocess

import pytest

from launch.cli import main as cli
from launch.cli.main import COMMANDS


@pytest.fixture
def script(capsys):
    def print_script(shell: str) -> str:
        assert cli.run(["completion", shell]) == 0
        return capsys.readouterr().out

    return print_script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_knows_all_commands_and_flags(script, shell):
    text = script(shell)
    for name in COMMANDS:
        assert f"'{name}': {{'description'" in text
    for flag in (
        "--learning-rate",
        "--no-prioritized",
        "--sbatch-extra",
        "--checkpoint",
        "--sweep",
    ):
        assert flag in text


def test_zsh_counts_words_as_the_script_does_and_completes_paths(script):
    text = script("zsh")
    assert '"$CURRENT"' not in text and '"$((CURRENT - 1))"' in text
    assert "completions = completions or ['__TYRO_COMPLETE_FILES__']" in text


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("vantage st", "status stop"),
        ("vantage train --optimizer a", "adam"),
        ("vantage train --learning-r", "--learning-rate"),
        ("vantage status ru", ""),  # then bash completes files
    ],
)
def test_bash_completes(script, tmp_path, words, found):
    (tmp_path / "vantage").write_text(script("bash"))
    ask = (
        f"source vantage; COMP_WORDS=({words}); COMP_CWORD=$(({len(words.split())} - 1)); "
        '_vantage; echo "${COMPREPLY[*]}"; complete -p vantage'
    )
    done = subprocess.run(
        ["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == [found, "complete -o default -F _vantage vantage"]


def test_a_shell_that_is_not_known_is_refused(refuse):
    assert "'csh' is not one of bash, zsh, fish" in refuse("completion", "csh")
    assert "vantage completion needs {bash,zsh,fish}" in refuse("completion")
