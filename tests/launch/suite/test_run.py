"""Suites: what is skipped, continued, survived and stopped; a real one, to its report."""

import errno
import json
import os
import signal
import sys
import time

import pytest

from launch.cli import main as cli
from launch.suite import run as suite_loop
from launch.suite import suite_run
from tests.launch.suite.small_suite import run_suite
from tests.launch.tiny_run import TINY_FLAGS

WAIT_SECONDS = 60.0  # bounds a hang


def test_the_grid_is_run_one_after_another_and_then_skipped(tmp_path, started, capsys):
    assert run_suite(tmp_path / "s") == 0
    grid = ["pong-va-seed1", "pong-q-seed1", "breakout-va-seed1", "breakout-q-seed1"]
    assert started.names == grid
    assert "4 of 4 runs done\n" in capsys.readouterr().out
    assert run_suite(tmp_path / "s", "--seeds", "2", "--parallel", "3") == 0
    assert started.names[4:] == [name.replace("seed1", "seed2") for name in grid]
    assert "8 runs in" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "s" / "suite.json").read_text())["runs"]) == 8


def test_a_failed_run_does_not_stop_the_others_and_is_told_at_the_end(tmp_path, started, capsys):
    started.failing = ("pong-q-seed1",)
    assert run_suite(tmp_path / "s") == 1
    said = capsys.readouterr().out
    assert "failed: q on pong, seed 1: exit code 1: boom (see " in said
    assert "3 of 4 runs done; 1 left: the same command continues" in said
    started.failing = ()
    assert run_suite(tmp_path / "s") == 0
    assert started.names[4:] == ["pong-q-seed1"]


def test_records_are_written_anew_whenever_a_run_ends(tmp_path, started, monkeypatch):
    records, seen = tmp_path / "records", []
    real = suite_loop.SuiteRecords.update

    def update_and_look(self):
        real(self)
        lines = (records / "evaluations.csv").read_text().splitlines()[1:]
        seen.append([line.split(",")[0] for line in lines])

    monkeypatch.setattr(suite_loop.SuiteRecords, "update", update_and_look)
    assert run_suite(tmp_path / "s", "--records", str(records)) == 0
    assert [len(names) for names in seen] == [0, 1, 2, 3, 4]
    assert sorted(seen[-1]) == sorted(started.names)
    configs = json.loads((records / "configs.json").read_text())
    assert configs["pong-q-seed1"]["settings"]["algorithm"] == "q"
    plan = (records / "plan.txt").read_text().splitlines()
    assert len(plan) == 4 and plan[0].startswith("vantage train --algorithm va ")
    assert plan[0].endswith(" --game pong --seed 1 --run-dir pong-va-seed1")


def test_records_that_cannot_be_written_are_refused_at_the_start_and_survived_later(
    tmp_path, started, monkeypatch, capsys
):
    (tmp_path / "file").touch()
    assert run_suite(tmp_path / "s", "--records", str(tmp_path / "file")) == 2
    assert "choose another --records" in capsys.readouterr().err and not started.names

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("launch.suite.records.record_folder", full)
    assert run_suite(tmp_path / "s") == 0
    assert "No space left on device" in capsys.readouterr().err
    assert len(started.names) == 4


UNTIL_INTERRUPTED = """
stops=0
trap 'stops=$((stops + 1)); echo $stops >> {0}.stops; [ $stops -lt {1} ] || exit 130' INT
touch {0}.up
for tick in $(seq 500); do sleep 0.02; done
exit 9
"""


def stop_when_up(monkeypatch, path, *, interrupts):
    """Runs that end at their last interrupt; the suite gets the first while it starts one."""
    script = UNTIL_INTERRUPTED.format(path, interrupts)
    monkeypatch.setattr(suite_run, "train_command", lambda planned: ["sh", "-c", script])
    real, up = suite_run.subprocess.Popen, path.with_name(f"{path.name}.up")

    def popen_and_stop(*args, **kwargs):
        process = real(*args, **kwargs)
        deadline = time.monotonic() + WAIT_SECONDS
        while not up.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(suite_run.subprocess, "Popen", popen_and_stop)


def test_a_stopped_suite_stops_the_run_under_way_and_starts_nothing_more(
    tmp_path, started, monkeypatch, capsys
):
    stop_when_up(monkeypatch, tmp_path / "run", interrupts=1)
    assert run_suite(tmp_path / "s") == 130
    said = capsys.readouterr().out
    assert "stopping the runs under way" in said and "killing" not in said
    assert said.count("started ") == 1
    assert "0 of 4 runs done; 4 left: the same command continues" in said


def test_a_second_interrupt_reaches_the_runs_too(tmp_path, started, monkeypatch, capsys):
    stop_when_up(monkeypatch, tmp_path / "run", interrupts=2)
    stops = tmp_path / "run.stops"
    real = suite_loop.time.sleep

    def sleep_and_interrupt(seconds):
        if stops.exists() and len(stops.read_text().split()) == 1:
            signal.raise_signal(signal.SIGINT)
        real(seconds)

    monkeypatch.setattr(suite_loop.time, "sleep", sleep_and_interrupt)
    assert run_suite(tmp_path / "s") == 130
    assert "killing the runs under way" in capsys.readouterr().out


def test_runs_at_a_time_compute_on_cores_of_their_own(tmp_path, started, monkeypatch):
    cores = sorted(os.sched_getaffinity(0))
    show = "import os; print(*sorted(os.sched_getaffinity(0)))"
    monkeypatch.setattr(suite_run, "train_command", lambda planned: [sys.executable, "-Sc", show])
    assert run_suite(tmp_path / "s", "--parallel", str(len(cores))) == 0
    logs = [path.read_text().split() for path in (tmp_path / "s" / "logs").glob("*.log")]
    assert len(logs) == 4 and all(len(log) == 1 and int(log[0]) in cores for log in logs)


@pytest.mark.usefixtures("restored_signals")
def test_a_real_suite_goes_from_nothing_to_its_report_in_one_go(tmp_path, capsys):
    flags = [flag for flag in TINY_FLAGS if "frames=6000" not in flag]
    out, page = tmp_path / "suite", tmp_path / "report" / "index.html"
    grid = ["--games", "pong", "breakout", "--algorithms", "va", "--seeds", "1"]
    args = ["suite", *grid, "--frames", "1600", "--out", str(out), "--parallel", "2"]
    assert cli.run([*args, "--", *flags, "--serial"]) == 0, capsys.readouterr().out
    report = ["report", str(out), "--out", str(page.parent), "--resamples", "20"]
    assert cli.run(report) == 0
    text = page.read_text()
    assert "2 runs, 2 finished" in text
    assert "2 of 2 runs with the restricted action set" in text
    assert "breakout" in text and "pong" in text
    said = capsys.readouterr()
    assert f"open {page}" in said.out and not said.err
