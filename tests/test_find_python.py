"""Which interpreter `make` takes, out of those a machine has."""

import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).parents[1] / "tools" / "find_python.sh"


@pytest.fixture
def machine(tmp_path):
    """Puts interpreters into PATH and pyenv; they pass the script's check for one version each."""
    (tmp_path / "bin").mkdir()

    def add(name: str, version: str, folder: str = "bin") -> pathlib.Path:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\n[ "$3" = {version} ]\n')
        path.chmod(0o755)
        return path

    return add


@pytest.fixture
def find(tmp_path):
    def run(*args: str, python: str | None = None) -> subprocess.CompletedProcess:
        system = f"{tmp_path / 'bin'}:/usr/bin:/bin"
        environment = {"PATH": system, "HOME": str(tmp_path / "home")}
        if python is not None:
            environment["PYTHON"] = python
        return subprocess.run(
            [SCRIPT, *args], env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_the_first_version_wins_and_its_number_can_be_asked_for(machine, find):
    machine("python9.10", "9.10")
    newer = machine("python9.11", "9.11")
    assert find("9.11", "9.10").stdout == f"{newer}\n"
    assert find("--version", "9.11", "9.10").stdout == "9.11\n"


def test_the_next_version_serves_where_the_first_is_missing(machine, find):
    older = machine("python9.10", "9.10")
    assert find("9.11", "9.10").stdout == f"{older}\n"


def test_a_shim_that_does_not_run_is_passed_over_for_the_newest_of_pyenv(machine, find):
    machine("python9.11", "none")
    machine("python9.11", "9.11", "home/.pyenv/versions/9.11.9/bin")
    newest = machine("python9.11", "9.11", "home/.pyenv/versions/9.11.10/bin")
    assert find("9.11").stdout == f"{newest}\n"
    # By its name it means the version; a path means that one file.
    assert find("9.11", "9.10", python="python9.11").stdout == f"{newest}\n"


def test_the_one_that_is_named_is_the_only_one(machine, find):
    machine("python9.11", "9.11")
    named = machine("mine", "9.10", "elsewhere")
    assert find("9.11", "9.10", python=str(named)).stdout == f"{named}\n"
    refused = find("9.11", python=str(named))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"PYTHON={named} is not a working Python 9.11")


def test_where_there_is_none_one_line_says_how_to_get_one(find):
    missing = find("9.11", "9.10")
    assert missing.returncode == 1
    assert missing.stdout == ""
    (line,) = missing.stderr.splitlines()
    assert line.startswith("Python 9.11 or 9.10 with venv is needed")
    assert "python9.11-venv" in line
