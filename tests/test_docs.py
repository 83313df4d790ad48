"""The examples of docs/extending.md: taken from the page, and run, shortened by flags."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from report.metrics_file import read_rows

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extending.md"
WAIT_SECONDS = 400.0  # bounds a hang
SHORT = (
    " --frames=1600 --warmup-steps=200 --replay-capacity-steps=5000 --max-episode-frames=400"
    " --eval-episodes=1 --actors=1 --envs-per-actor=4 --updates-per-dispatch=1 --batch-size=8"
    " --publish-period-updates=10"
)
# As pip writes it: the current folder is not importable by itself.
CONSOLE_SCRIPT = f"#!{sys.executable}\nfrom launch.cli.entry import main\nmain()\n"
PYTHON = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
# A machine that is this one.
SSH = '#!/bin/sh\nshift\nexec sh -c "$*"\n'


def blocks(language: str) -> list[str]:
    """Fenced code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def commands(section: str) -> list[str]:
    """The commands of a section, one per line."""
    [text] = [block for block in blocks("sh") if section in block]
    return text.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """A folder with the page's files in it, and `vantage`, `python` and `ssh` beside it."""
    root = tmp_path_factory.mktemp("docs")
    work, programs = root / "work", root / "bin"
    work.mkdir(), programs.mkdir()
    for block in blocks("python"):
        name = re.match(r"# (\w+\.py)\n", block)
        assert name is not None, block
        (work / name[1]).write_text(block)
    for name, text in (("vantage", CONSOLE_SCRIPT), ("python", PYTHON), ("ssh", SSH)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return work


def run(folder: pathlib.Path, command: str) -> str:
    path = f"{folder.parent / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def updates(run_dir: pathlib.Path) -> int:
    """Updates of a run, as its learner reported them last."""
    rows = list(read_rows(run_dir / "metrics.jsonl"))
    return [row["updates"] for row in rows if row["role"] == "learner"][-1]


def test_the_algorithm_trains_goes_on_and_is_scored(folder):
    train, resume, score = commands("vantage eval")
    run(folder, train + SHORT + " --serial --network=tiny")
    before = updates(folder / "runs" / "mine")
    run(folder, resume + " --serial --frames=2400")
    assert updates(folder / "runs" / "mine") > before > 0
    assert "my_loss:AdvantageLearning on pong" in run(folder, score)


def test_the_network_trains_with_the_algorithm(folder):
    [train] = commands("my_network:WIDE")
    run(folder, train + SHORT + " --serial")
    [made] = (folder / "runs").glob("pong-my_loss.AdvantageLearning-*")
    assert updates(made) > 0


def test_the_engine_starts_processes_on_other_machines_and_all_find_the_modules(folder):
    train, status = commands("ssh_engine.py")
    own = " --algorithm=my_loss:AdvantageLearning --network=my_network:Pooled"
    run(folder, train + SHORT + own)
    assert updates(folder / "runs" / "over_ssh") > 0
    said = run(folder, status)
    assert all(re.search(rf"actor +{index} .* stopped", said) for index in (0, 1))
