"""`vantage status`: what is shown of runs that do not run."""

import json
import os
import time

import pytest

from launch.cli import main as cli
from launch.node_status import NodeStatus
from launch.supervise.status_file import write_host_status
from report.metrics_file import MetricsFile
from tests.report.metric_rows import learner_row


def test_status_of_what_is_not_a_run_is_refused(refuse, tmp_path):
    assert "not a run directory" in refuse("status", str(tmp_path / "nothing"))


def test_status_of_a_run_never_started_is_json_too(capsys, local_run):
    assert cli.run(["status", str(local_run.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "not started"


def test_status_shows_a_host_that_could_not_join(capsys, hosts_run):
    for path, host in ((hosts_run.status_file, "h1"), (hosts_run.host_file(0), "h2")):
        path.parent.mkdir(exist_ok=True)
        problem = None if host == "h1" else "cannot import jax"
        stored = {"state": "failed", "host": host, "pid": 1, "started": 0.0, "updated": 0.0}
        path.write_text(json.dumps({**stored, "nodes": [], "problem": problem}))
    assert cli.run(["status", str(hosts_run.root)]) == 0
    assert "host h2 failed: cannot import jax" in capsys.readouterr().out
    assert cli.run(["status", str(hosts_run.root), "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert hosts[1] == {"host": "h2", "state": "failed", "problem": "cannot import jax"}


def test_a_damaged_metrics_file_is_refused_in_one_line(refuse, local_run):
    local_run.metrics_file.write_text("{\n{}\n")
    assert "metrics.jsonl, line 1: not a metrics row" in refuse("status", str(local_run.root))


def stored_run(run_dir, *, learner_time: float) -> None:
    """A run whose learner made two rows, one a second, the last one at `learner_time`."""
    rows = [
        learner_row(learner_time - 1.0, 4000, updates=1000, updates_per_second=136.0),
        learner_row(learner_time, 8000, updates=1136, updates_per_second=136.0),
    ]
    MetricsFile(run_dir.metrics_file).append(rows)


NODE = NodeStatus(
    role="learner",
    index=0,
    host="h1",
    pid=7,
    state="running",
    progress="update 1,136",
    progress_age_seconds=95.0,
)


def shown(run_dir, capsys) -> tuple[str, dict]:
    assert cli.run(["status", str(run_dir.root)]) == 0
    text = capsys.readouterr().out
    assert cli.run(["status", str(run_dir.root), "--json"]) == 0
    return text, json.loads(capsys.readouterr().out)


def test_status_of_a_run_that_trains_shows_its_rates_whatever_the_readers_clock(
    capsys, local_run, monkeypatch
):
    clock = time.time() - 7200.0
    monkeypatch.setattr("launch.supervise.status_file.time.time", lambda: clock)
    stored_run(local_run, learner_time=clock - 3.0)
    write_host_status(local_run.status_file, "running", started=1.0, nodes=[NODE])
    monkeypatch.undo()
    text, stored = shown(local_run, capsys)
    assert "136.0 updates/s" in text and "update 1,136  1m 35s" in text
    assert stored["updates_per_second"] == 136.0


def test_status_shows_how_long_a_learner_has_been_stuck_and_no_old_rate(capsys, local_run):
    stored_run(local_run, learner_time=time.time() - 95.0)
    write_host_status(local_run.status_file, "running", started=1.0, nodes=[NODE])
    text, stored = shown(local_run, capsys)
    assert "updates/s" not in text and "frames/s" not in text
    assert "update 1,136  1m 35s" in text
    assert stored["updates"] == 1136
    assert stored["updates_per_second"] is stored["frames_per_second"] is None
    assert stored["nodes"][0]["progress_age_seconds"] == 95.0


@pytest.mark.parametrize(("state", "said"), [("stopped", "stopped"), ("running", "dead")])
def test_status_of_a_run_that_is_over_has_ages_and_no_rates(
    capsys, local_run, monkeypatch, state, said
):
    monkeypatch.setattr("launch.supervise.status_file._WATCH_SECONDS", 0.0)
    stored_run(local_run, learner_time=time.time())
    write_host_status(local_run.status_file, state, started=1.0, nodes=[NODE])
    stored = json.loads(local_run.status_file.read_text())
    local_run.status_file.write_text(json.dumps({**stored, "machine": "another"}))
    long_ago = time.time() - 7230.0
    os.utime(local_run.status_file, (long_ago, long_ago))
    text, stored = shown(local_run, capsys)
    assert f"{said}, last heard of 2h 00m ago" in text
    assert "updates/s" not in text and "update 1,136  2h 02m" in text
    assert stored["state"] == said and stored["updates_per_second"] is None
    assert stored["silent_seconds"] == pytest.approx(7200.0, abs=600.0)


def test_a_damaged_status_file_is_said_and_the_rest_is_shown(capsys, local_run, monkeypatch):
    monkeypatch.setattr("launch.supervise.status_file._WATCH_SECONDS", 0.0)
    local_run.status_file.write_text('{"state": "run')
    stored_run(local_run, learner_time=time.time())
    text, stored = shown(local_run, capsys)
    assert "status.json cannot be read" in text
    assert stored["state"] == "unknown" and stored["updates"] == 1136


@pytest.mark.parametrize("command", [("status", "run"), ("list", ".")])
def test_a_number_that_json_does_not_have_is_null(capsys, local_run, monkeypatch, command):
    monkeypatch.chdir(local_run.root.parent)
    scored = {"time": 1.0, "role": "evaluator", "frames": 4, "eval_return": None}
    MetricsFile(local_run.metrics_file).append([{**scored, "human_normalized": float("nan")}])
    assert cli.run([*command, "--json"]) == 0
    said = capsys.readouterr().out
    stored = json.loads(said, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    seen = stored if command[0] == "status" else stored[0]
    assert seen["evaluation"]["mean_return"] is seen["evaluation"]["human_normalized"] is None
