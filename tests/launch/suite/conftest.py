"""Suites with a small script in the place of `vantage train`."""

import sys

import pytest

from launch.suite import run as suite_loop
from launch.suite import suite_run
from launch.suite.plan import PlannedRun
from tests.launch.suite.small_suite import finish


class StartedRuns:
    """Names of the runs started, in order; each finishes at once, but for those in `failing`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.failing: tuple[str, ...] = ()

    def command(self, planned: PlannedRun) -> list[str]:
        self.names.append(planned.name)
        if planned.name in self.failing:
            return [sys.executable, "-S", "-c", "print('boom'); raise SystemExit(1)"]
        finish(planned)
        return ["true"]


@pytest.fixture
def started(monkeypatch, restored_signals):
    runs = StartedRuns()
    monkeypatch.setattr(suite_run, "train_command", runs.command)
    monkeypatch.setattr(suite_loop, "_POLL_SECONDS", 0.01)
    return runs
