"""`vantage list`: what is in a folder of runs, whatever else is in it."""

import json
import time

import pytest

from launch.cli import main as cli
from launch.config import PRESETS
from launch.run_dir import RunDir
from launch.supervise import status_file
from launch.supervise.status_file import write_host_status
from tests.report.synthetic_runs import write_run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Runs of all kinds, and what is none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(status_file, "_WATCH_SECONDS", 0.0)  # for a status that cannot be read
    runs = tmp_path / "runs"
    write_run(runs / "scored", algorithm="q", returns=(-20.0, 18.5))
    done = RunDir(write_run(runs / "suite" / "done", game="breakout", returns=(1.0, 2.0)))
    write_host_status(done.status_file, "finished", started=time.time())
    RunDir(runs / "new").create(PRESETS["cpu"])
    torn = write_run(runs / "torn")
    (torn / "metrics.jsonl").write_text("{\n\x1b[2J\n")
    (torn / "status.json").mkdir()
    (runs / "notes").mkdir()
    (runs / "notes" / "config.json").write_text('{"mine": 1}')
    (runs / "file").write_text("")
    return runs


def test_runs_are_listed_with_state_game_algorithm_frames_and_last_evaluation(folder, capsys):
    assert cli.run(["list", "--json"]) == 0
    said = capsys.readouterr()
    found = {run["run"]: run for run in json.loads(said.out)}
    assert set(found) == {"runs/new", "runs/scored", "runs/suite/done", "runs/torn"}
    scored = found["runs/scored"]
    assert (scored["game"], scored["algorithm"], scored["state"]) == ("pong", "q", "-")
    assert scored["evaluation"]["mean_return"] == 18.5
    assert 0 < scored["frames"] <= scored["total_frames"]
    assert found["runs/suite/done"]["state"] == "finished"
    assert found["runs/new"]["state"] == "not started"
    assert found["runs/torn"]["evaluation"] is None
    assert "notes/config.json: has no 'config'; this run is left out" in said.err


def test_the_list_can_be_read_by_people(folder, capsys):
    assert cli.run(["list", "runs/suite"]) == 0
    header, line, *more = capsys.readouterr().out.splitlines()
    assert not more
    assert header.split()[:4] == ["run", "state", "game", "algorithm"]
    assert line.split()[:4] == ["done", "finished", "breakout", "va"]
    assert cli.run(["list", "runs/scored"]) == 0
    assert "18.5 at" in capsys.readouterr().out


def test_a_folder_without_runs_is_no_error_and_none_at_all_is_one(folder, capsys, refuse):
    (folder / "empty").mkdir()
    assert cli.run(["list", "runs/empty"]) == 0
    assert capsys.readouterr().out == "no runs in runs/empty\n"
    assert "'nowhere' is not a folder" in refuse("list", "nowhere")
