"""Searches with a small script in the place of `vantage train`."""

import sys

import pytest

from launch.errors import DIVERGED
from launch.suite import run as suite_loop
from launch.suite import suite_run
from launch.suite.plan import PlannedRun
from tests.launch.suite.small_suite import finish


class ScoredRuns:
    """Runs that end at once with the return that their rate is said to have."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.returns: dict[float, float | None] = {}  # None: learning diverges
        self.failing: set[str] = set()

    def command(self, planned: PlannedRun) -> list[str]:
        self.names.append(planned.name)
        rate = planned.config.learner.learning_rate
        score = self.returns[rate]
        if planned.name in self.failing:
            return _failing("boom")
        if score is None:
            return _failing(f"learner-0 gave up: {DIVERGED}: NaN", "vantage: error: it failed")
        finish(planned, score=score)
        return ["true"]


def _failing(*lines: str) -> list[str]:
    code = f"print({chr(10).join(lines)!r}); raise SystemExit(1)"
    return [sys.executable, "-S", "-c", code]


@pytest.fixture
def scored(monkeypatch, restored_signals):
    runs = ScoredRuns()
    monkeypatch.setattr(suite_run, "train_command", runs.command)
    monkeypatch.setattr(suite_loop, "_POLL_SECONDS", 0.01)
    return runs
