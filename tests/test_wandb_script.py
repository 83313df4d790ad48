"""The script of docs/metrics.md: taken from the page and run, with a stand-in for wandb."""

import json
import pathlib
import re
import subprocess
import sys

from tests.report.synthetic_runs import write_run

ROOT = pathlib.Path(__file__).parents[1]
# The part of wandb that is used, on paper: wandb needs another protobuf than Reverb does.
STAND_IN = """
import json

class Run:
    def __enter__(self):
        return self
    def __exit__(self, *problem):
        pass
    def define_metric(self, name, step_metric):
        print(json.dumps({"define_metric": [name, step_metric]}))
    def log(self, values):
        print(json.dumps(values))

def init(**options):
    print(json.dumps(options))
    return Run()
"""


def test_every_row_of_a_run_is_logged_by_frames(tmp_path):
    [script] = re.findall(
        r"```python\n(# to_wandb\.py\n.*?)```", (ROOT / "docs/metrics.md").read_text(), re.DOTALL
    )
    (tmp_path / "to_wandb.py").write_text(script)
    (tmp_path / "wandb.py").write_text(STAND_IN)
    run = write_run(tmp_path / "first", returns=(-20.0, -10.0))
    done = subprocess.run(
        [sys.executable, "to_wandb.py", str(run), "atari"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    options, defined, *rows = map(json.loads, done.stdout.splitlines())
    assert (options["project"], options["name"]) == ("atari", "first")
    assert options["config"]["learner"]["algorithm"] == "va"
    assert defined == {"define_metric": ["*", "frames"]}
    evaluations = [row for row in rows if "evaluator/eval_return" in row]
    assert [(row["frames"], row["evaluator/eval_return"]) for row in evaluations] == [
        (1000, -20.0),
        (2000, -10.0),
    ]
