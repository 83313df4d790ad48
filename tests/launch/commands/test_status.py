"""`vantage status`: what is shown of runs that do not run."""

import json

from launch.cli import main as cli


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
