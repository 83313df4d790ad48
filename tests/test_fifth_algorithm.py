"""A fifth algorithm is a class and a line in one file; everything else finds it by itself."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("actors", "launch", "learner", "report", "reverb_server", "tabular")
WAIT_SECONDS = 400.0  # bounds a hang

CLASS = '''
@dataclasses.dataclass(frozen=True)
class Expected(Dueling):
    """Dueling that backs up the mean over actions that mu takes."""

    behavior_head: bool = True

    def bootstrap_policy(self, online_t: Heads) -> jax.Array:
        """mu itself."""
        return jax.nn.softmax(online_t.logits)

'''
LINE = '        "expected": Expected(),\n'

# Runs in the changed copy; what it finds is its last line.
USE = """
import contextlib, csv, io, json, os, pathlib
from launch.cli import main as cli
from launch.cli.argv import parse_train
from launch.suite.plan import SuiteRequest, plan_suite
from report.metrics_file import read_rows
from tabular import theorems

def said(*args):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        assert cli.run(args) == 0
    return out.getvalue()

theorems.NUM_SAMPLED_STEPS = 20
runs = pathlib.Path("runs")
os.environ["COLUMNS"] = "100"  # of the help
train = ["--algorithm=expected", "--network=tiny", "--serial", "--warmup-steps=200",
         "--frames=1200", "--batch-size=32", "--updates-per-dispatch=1", "--eval-episodes=1",
         "--samples-per-insert=1", "--publish-period-updates=1", "--max-episode-frames=200"]
said("train", *train, "--run-dir", str(runs / "one"))
said("report", str(runs), "--out", "page", "--resamples=10")
said("tabular", "--seeds=1", "--updates=50", "--max-updates=50", "--epsilons", "0.5",
     "--epsilon=0.5", "--trajectories=1", "--budgets", "1", "--out", "study")
planned = plan_suite(SuiteRequest(), (), lambda args: parse_train(args).config)
studied = json.loads(pathlib.Path("study/summary.json").read_text())["gradients"]["per-step"]
rows = list(read_rows(runs / "one" / "metrics.jsonl"))
print(json.dumps({
    "train help": said("train", "--help"),
    "suite help": said("suite", "--help"),
    "suite": sorted({run.algorithm for run in planned}),
    "updates": max(row["updates"] for row in rows if row["role"] == "learner"),
    "report": [row["method"] for row in csv.DictReader(open("page/scores.csv"))],
    "study": list(studied["control"]["share_of_optimal"]),
    "page": pathlib.Path("study/tabular.md").read_text(),
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict:
    """What a copy of the project, changed in one file, says and does."""
    copy = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    losses = copy / "learner" / "losses.py"
    text = losses.read_text()
    registry, last = "\nALGORITHMS: Mapping", '        "q": QLearning(),\n'
    assert text.count(registry) == text.count(last) == 1
    losses.write_text(text.replace(registry, CLASS + registry).replace(last, last + LINE))
    (copy / "use.py").write_text(USE)
    done = subprocess.run(
        [sys.executable, "use.py"],
        cwd=copy,
        env={**os.environ, "PATH": "", "PYTHONPATH": str(copy), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_it_stands_in_the_help(found):
    for command in ("train", "suite"):
        text = " ".join(found[f"{command} help"].replace("│", " ").split())
        assert "dueling, q, expected, or your own module:Name" in text


def test_it_trains(found):
    assert found["updates"] >= 3


def test_a_suite_compares_it_with_the_others(found):
    assert found["suite"] == sorted(["va", "behavior_dueling", "dueling", "q", "expected"])


def test_the_report_names_it(found):
    assert found["report"] == ["expected"]


def test_the_tabular_study_has_its_line_and_its_column(found):
    assert found["study"] == ["va", "behavior_dueling", "dueling", "q", "expected"]
    assert "| ε | va | behavior_dueling | dueling | q | expected |" in found["page"]
