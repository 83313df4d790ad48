"""Finished runs outlive the folder of their suite."""

import json
import shutil

from launch.cli import main as cli
from report.metrics_file import MetricsFile, read_rows
from tests.launch.suite.small_suite import finish, plan, run_suite

GRID = ["breakout-q-seed1", "breakout-va-seed1", "pong-q-seed1", "pong-va-seed1"]


def kept_in(records):
    return sorted(path.parent.name for path in records.glob("*/config.json"))


def test_a_suite_whose_folder_is_lost_takes_back_what_is_kept_and_runs_the_rest(
    tmp_path, started, capsys
):
    out, records = tmp_path / "s", tmp_path / "records"
    started.failing = ("pong-q-seed1",)
    assert run_suite(out, "--records", str(records)) == 1
    done = [name for name in GRID if name != "pong-q-seed1"]
    assert kept_in(records) == done
    before = (records / "evaluations.csv").read_text()
    shutil.rmtree(out)
    started.names.clear()
    started.failing = ()
    assert run_suite(out, "--records", str(records)) == 0
    assert started.names == ["pong-q-seed1"]
    said = capsys.readouterr().out
    assert f"3 finished runs taken back from {records}" in said
    assert "3 done already" in said and kept_in(records) == GRID
    assert set(before.splitlines()) < set((records / "evaluations.csv").read_text().splitlines())


def test_a_report_reads_what_is_kept_as_it_reads_the_runs(tmp_path, started):
    out, records = tmp_path / "s", tmp_path / "records"
    assert run_suite(out, "--records", str(records)) == 0
    for folder, page in ((out, tmp_path / "of-runs"), (records, tmp_path / "of-records")):
        assert cli.run(["report", str(folder), "--out", str(page), "--resamples", "20"]) == 0
    for name in ("evaluations.csv", "runs.csv", "scores.csv", "configs.json"):
        pages = (tmp_path / "of-runs", tmp_path / "of-records")
        [of_runs, of_records] = [(page / name).read_text() for page in pages]
        assert of_runs == of_records and "pong" in of_runs


def test_what_is_kept_is_small_evaluations_whole_and_the_learner_s_pace(tmp_path, started):
    out, records = tmp_path / "s", tmp_path / "records"
    [planned, *_] = plan(out)
    finish(planned)
    learner = {"time": 2.0, "role": "learner", "frames": 8, "updates": 3, "loss": 0.5}
    rows = [learner, {"time": 2.0, "role": "actor/0", "frames": 8, "episode_return": 1.0}]
    MetricsFile(planned.run_dir.metrics_file).append(rows)
    evaluation = next(read_rows(planned.run_dir.metrics_file))
    assert run_suite(out, "--records", str(records)) == 0
    kept = list(read_rows(records / planned.name / "metrics.jsonl"))
    del learner["loss"]
    assert kept == [evaluation, learner]
    stored = (records / planned.name / "config.json").read_text()
    assert stored == planned.run_dir.config_file.read_text()


def test_a_longer_suite_keeps_the_longer_runs(tmp_path, started):
    out, records = tmp_path / "s", tmp_path / "records"
    assert run_suite(out, "--records", str(records)) == 0
    assert run_suite(out, "--records", str(records), "--frames", "3200") == 0
    for name in GRID:
        config = json.loads((records / name / "config.json").read_text())
        assert config["config"]["frames"] == 3200


def test_kept_runs_of_another_suite_are_refused(tmp_path, started, capsys):
    records = tmp_path / "records"
    assert run_suite(tmp_path / "s", "--records", str(records)) == 0
    assert run_suite(tmp_path / "t", "--records", str(records), "--full-action-set") == 2
    assert "holds a run with full_action_set=False" in capsys.readouterr().err


def test_links_in_the_records_are_not_followed(tmp_path, started):
    out, records, secret = tmp_path / "s", tmp_path / "records", tmp_path / "secret"
    assert run_suite(out, "--records", str(records)) == 0
    shutil.rmtree(out)
    secret.write_text("secret\n")
    metrics = records / "pong-va-seed1" / "metrics.jsonl"
    metrics.unlink()
    metrics.symlink_to(secret)
    assert run_suite(out, "--records", str(records)) == 0
    assert secret.read_text() == "secret\n"
    assert "secret" not in (out / "pong-va-seed1" / "metrics.jsonl").read_text()


def test_records_in_the_folder_of_the_suite_hold_no_second_copy_of_a_run(tmp_path, started):
    assert run_suite(tmp_path / "s") == 0
    assert kept_in(tmp_path / "s" / "records") == []
