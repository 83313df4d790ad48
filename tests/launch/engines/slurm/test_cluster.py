"""What Slurm's commands print, and machines without them."""

import pytest

from launch.engines.slurm import cluster
from launch.errors import InputError


def test_the_queue_is_read_with_tasks_and_reasons():
    listed = (
        "12|12|N/A|vantage-c0ffee-learner|RUNNING|h1|None\n"
        "14|13|0|vantage-c0ffee-actor|RUNNING|h2|None\n"
        "13|13|1|vantage-c0ffee-actor|PENDING||Resources\n"
    )
    learner, running, waiting = cluster.parse_queue(listed)
    assert learner == ("12", "vantage-c0ffee-learner", "RUNNING", "h1", "None", None)
    assert (running.job_id, running.task, running.host) == ("13_0", 0, "h2")
    assert (waiting.job_id, waiting.host, waiting.reason) == ("13_1", "", "Resources")
    assert cluster.parse_queue("") == []


def test_without_slurm_the_missing_command_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InputError, match="no sbatch in PATH"):
        cluster.require_slurm()
