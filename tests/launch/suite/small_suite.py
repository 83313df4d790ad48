"""A suite of two games and two algorithms, run, planned or finished."""

import pathlib

import pytest

from launch.cli import main as cli
from launch.suite import run as suite_loop
from launch.suite.plan import PlannedRun, plan_suite
from report.metrics_file import MetricsFile

TINY = ("--network=tiny", "--warmup-steps=200", "--replay-capacity-steps=1000")


def run_suite(out: pathlib.Path, *flags: str) -> int:
    args = ["suite", "--games", "pong", "breakout", "--algorithms", "va", "q", "--seeds", "1"]
    return cli.run([*args, "--frames", "1600", "--out", str(out), *flags, "--", *TINY])


def plan(out: pathlib.Path, *flags: str) -> list[PlannedRun]:
    """What `run_suite` would run."""
    planned: list[PlannedRun] = []

    def remember(request, slurm, extra_args, parse):
        planned.extend(plan_suite(request, extra_args, parse))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite_loop, "suite", remember)
        assert run_suite(out, *flags) == 0
    return planned


def finish(planned: PlannedRun, *, score: float = 1.0) -> None:
    """What a run leaves behind."""
    planned.run_dir.create(planned.config)
    row = {"time": 1.0, "role": "evaluator", "frames": planned.config.frames, "eval_return": score}
    MetricsFile(planned.run_dir.metrics_file).append([row])
