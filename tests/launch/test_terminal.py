"""What reaches a terminal, and what happens when nobody reads it or the disk is full."""

import os
import pathlib
import subprocess

import pytest

from launch import terminal
from launch.cli import main as cli
from launch.invocation import vantage_command
from launch.run_dir import RunDir
from launch.suite.view import SuiteView
from report.metrics_file import MetricsFile
from tests.launch.tiny_run import tiny_config

ROOT = pathlib.Path(__file__).parents[2]
# Sets the title of a window, clears the screen, turns a line around, starts a new one, is no text.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202e\r\n\u2028\ud800[/red]:smile:"


@pytest.mark.parametrize("tell", [terminal.say, terminal.warn, terminal.complain])
def test_what_is_said_is_one_line_that_no_terminal_obeys(capsys, tell):
    tell(f"before {HOSTILE} after")
    said = "".join(capsys.readouterr())
    assert said.endswith("before ?]0;owned??[2J?2J?????[/red]:smile: after\n")
    assert said[:-1].isprintable()


def test_text_is_never_markup(capsys, tmp_path):
    RunDir(tmp_path / "[/red]:smile:").create(tiny_config())
    assert cli.run(["status", str(tmp_path / "[/red]:smile:")]) == 0
    assert "[/red]:smile:: not started" in capsys.readouterr().out
    SuiteView(terminal.make_console()).say("[/red]:smile:")
    assert capsys.readouterr().out == "[/red]:smile:\n"


def test_an_error_that_quotes_hostile_text_is_one_line(capsys, tmp_path):
    assert cli.run(["status", str(tmp_path / f"x{HOSTILE[:20]}y")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("vantage: error: ") and said[:-1].isprintable()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run_dir = RunDir(tmp_path_factory.mktemp("runs") / "run")
    run_dir.create(tiny_config())
    rows = [
        {"time": float(i), "role": "evaluator", "frames": 100 * i, "eval_return": float(i)}
        for i in range(3)
    ]
    MetricsFile(run_dir.metrics_file).append(rows)
    return run_dir.root


def vantage(args, stdout):
    return subprocess.run(
        vantage_command(*args),
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "args",
    [
        ["status", "RUN", "--json"],
        ["status", "RUN"],
        ["compare", "RUN", "--out", "OUT"],
        ["train", "--engine", "hosts", "--dry-run"],
        ["--help"],
        ["train", "--help"],
    ],
    ids=" ".join,
)
def test_a_reader_that_has_gone_is_no_error(run, tmp_path, args):
    places = {"RUN": str(run), "OUT": str(tmp_path / "out.png")}
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = vantage([places.get(arg, arg) for arg in args], writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_a_full_disk_has_lost_is_one_line_and_a_failure(run):
    with open("/dev/full", "wb") as full:
        done = vantage(["status", str(run), "--json"], full)
    assert done.returncode == 1
    assert done.stderr == ("vantage: error: what was to be said is lost: No space left on device\n")
