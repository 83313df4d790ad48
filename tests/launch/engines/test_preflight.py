"""How an actor host waits for the learner's, without waiting in the test."""

import json
import pathlib

import pytest

from launch.engines import preflight


class Clock:
    """Time that passes only when someone sleeps, and a learner's host that may live meanwhile."""

    def __init__(self, status_file: pathlib.Path, *, learner_lives: bool):
        self.now = 0.0
        self._status_file, self._learner_lives = status_file, learner_lives

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 30 * seconds
        if self._learner_lives:
            self._status_file.write_text(json.dumps({"updated": self.now}))


@pytest.mark.parametrize(
    ("learner_lives", "error"),
    [(True, preflight.PreflightError), (False, preflight.NoLearnerError)],
)
def test_a_replay_that_cannot_be_reached_is_told_from_one_that_is_not_there(
    hosts_run, monkeypatch, learner_lives, error
):
    clock = Clock(hosts_run.status_file, learner_lives=learner_lives)
    monkeypatch.setattr(preflight, "time", clock)
    if learner_lives:
        clock.sleep(1.0)
    with pytest.raises(error, match="no address"):
        preflight.wait_for_replay(hosts_run, hosts_run.keys / "actor-0.pem")
    limit = preflight._REPLAY_SECONDS if learner_lives else preflight._LEARNER_SECONDS
    assert clock.now == pytest.approx(limit, abs=120.0)
