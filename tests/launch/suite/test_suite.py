"""Suites: the grid, what is skipped, continued and survived; a real one, to its report.

Most tests put a small script in the place of `vantage train`.
"""

import io
import json
import pathlib
import signal
import sys

import pytest
from rich.console import Console

from launch.cli import main as cli
from launch.cli.argv import parse_train
from launch.run_dir import RunDir
from launch.suite import run as suite
from launch.suite.plan import PlannedRun, train_command
from launch.suite.view import Cell, SuiteState, SuiteView, format_state, render
from report.metrics_file import MetricsFile
from tests.launch.tiny_run import TINY_FLAGS

TINY = ("--network=tiny", "--warmup-steps=200", "--replay-capacity-steps=1000")


@pytest.fixture(autouse=True)
def restored_signals():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def finish(planned: PlannedRun) -> None:
    """What a run leaves behind."""
    planned.run_dir.create(planned.config)
    row = {"time": 1.0, "role": "evaluator", "frames": planned.config.frames, "eval_return": 1.0}
    MetricsFile(planned.run_dir.metrics_file).append([row])


@pytest.fixture
def started(monkeypatch):
    """Names of the runs started, in order; each finishes at once, but for those in `failing`."""
    names: list[str] = []

    def command(planned: PlannedRun) -> list[str]:
        names.append(planned.name)
        if planned.name in started_runs.failing:
            return [sys.executable, "-c", "print('boom'); raise SystemExit(1)"]
        finish(planned)
        return [sys.executable, "-c", ""]

    class StartedRuns(list):
        failing: tuple[str, ...] = ()

    started_runs = StartedRuns()
    monkeypatch.setattr(suite, "train_command", command)
    monkeypatch.setattr(suite, "_POLL_SECONDS", 0.01)
    started_runs.names = names
    return started_runs


def run_suite(out: pathlib.Path, *flags: str) -> int:
    args = ["suite", "--games", "pong", "breakout", "--algorithms", "va", "q", "--seeds", "1"]
    return cli.run([*args, "--frames", "1600", "--out", str(out), *flags, "--", *TINY])


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


def test_a_stopped_suite_starts_nothing_more(tmp_path, started, monkeypatch, capsys):
    real = suite.subprocess.Popen

    def popen_and_stop(*args, **kwargs):
        process = real(*args, **kwargs)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(suite.subprocess, "Popen", popen_and_stop)
    assert run_suite(tmp_path / "s") == 130
    assert started.names == ["pong-va-seed1"]
    assert "stopping the runs under way" in capsys.readouterr().out


def plan(tmp_path, *flags):
    planned: list[PlannedRun] = []

    def remember(request, slurm, extra_args, parse):
        planned.extend(suite.plan_suite(request, extra_args, parse))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "suite", remember)
        assert run_suite(tmp_path / "s", *flags) == 0
    return planned


def test_a_run_is_an_ordinary_train_command(tmp_path):
    [first, *_] = plan(tmp_path, "--full-action-set", "--preset", "cpu")
    command = train_command(first)
    assert command[0] == sys.executable
    assert command[3:] == [
        *("train", "--algorithm", "va", "--preset", "cpu", "--frames", "1600"),
        *("--full-action-set", *TINY, "--game", "pong", "--seed", "1"),
        *("--run-dir", str(tmp_path / "s" / "pong-va-seed1")),
    ]
    assert first.config == parse_train(command[4:-2]).config
    first.run_dir.create(first.config)
    assert train_command(first)[-1] == "--resume"


def test_atari57_is_all_games(tmp_path):
    assert len({run.game for run in plan(tmp_path, "--games", "atari57")}) == 57


@pytest.mark.parametrize(
    ("ablation", "full", "epsilon"),
    [("full-actions", True, 0.05), ("restricted-actions", False, 0.05),
     ("final-epsilon-0.5", False, 0.5)],
)  # fmt: skip
def test_ablations_are_the_papers(tmp_path, ablation, full, epsilon):
    for run in plan(tmp_path, "--ablation", ablation):
        assert run.config.environment.full_action_set is full
        assert run.config.actor.final_epsilon == epsilon


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--games", "pongg"], "did you mean pong"),
        (["--games", "pong", "pong"], "games=pong pong: each is needed once"),
        (["--seeds", "0"], "seeds=0 must be at least 1"),
        (["--parallel", "0"], "parallel=0 must be at least 1"),
        (["--frames", "0"], "frames=0"),
        (["--ablation", "restricted-actions", "--full-action-set"], "exclude each other"),
        (["--learner-partition", "gpu"], "--learner-partition needs --engine slurm, not local"),
        (["--engine", "slurm", "--actor-mem", "1G"], "a run of a suite has one host"),
        (["--engine", "slurm", "--learner-cpus", "0"], "learner_cpus=0 must be at least 1"),
        (["--engine", "slurm"], "no sbatch in PATH"),
        (["--", "--engine", "slurm"], "give it before the bare --"),
    ],
)
def test_a_bad_suite_is_refused_before_anything_starts(
    tmp_path, started, capsys, monkeypatch, flags, said
):
    monkeypatch.setenv("PATH", "")  # this machine may have a Slurm
    assert run_suite(tmp_path / "s", *flags) == 2
    assert said in capsys.readouterr().err
    assert not started.names and not (tmp_path / "s").exists()


def test_a_folder_with_runs_of_other_settings_is_refused(tmp_path, started, capsys):
    assert run_suite(tmp_path / "s") == 0
    assert run_suite(tmp_path / "s", "--ablation", "final-epsilon-0.5") == 2
    assert "holds a run with final_epsilon=0.05" in capsys.readouterr().err


def test_a_run_is_finished_once_its_end_is_scored(tmp_path):
    [planned, *_] = plan(tmp_path)
    assert not suite.is_finished(planned.run_dir, planned.config)
    planned.run_dir.create(planned.config)
    metrics = MetricsFile(planned.run_dir.metrics_file)
    metrics.append([{"time": 1.0, "role": "evaluator", "frames": 1000, "eval_return": 1.0}])
    metrics.append([{"time": 1.0, "role": "learner", "frames": 1600}])
    assert not suite.is_finished(planned.run_dir, planned.config)
    finish(planned)
    assert suite.is_finished(RunDir(planned.run_dir.root), planned.config)


def state(*cells: Cell) -> SuiteState:
    return SuiteState(cells, elapsed_seconds=60.0, eta_seconds=3600.0)


def test_the_grid_shows_every_state_and_shrinks_to_what_goes_on():
    console = Console(file=io.StringIO(), width=80, height=24)
    cells = [Cell(f"game{i}", "va", "waiting", 0.0) for i in range(40)]
    cells[30] = Cell("game30", "va", "running", 0.43)
    cells[31] = Cell("game31", "va", "failed", 0.1)
    console.print(render(state(*cells), max_lines=12))
    text = console.file.getvalue()
    assert "0 of 40 runs done, 1 running, 1 failed, 1.3% of all frames" in text
    assert "43%" in text and "✗" in text and "and 35 more games" in text
    assert "game30" in text and "game0" in text


def test_a_log_gets_one_line_a_minute():
    console = Console(file=io.StringIO(), width=200)
    view = SuiteView(console)
    one = state(Cell("pong", "va", "done", 1.0), Cell("pong", "q", "running", 0.5))
    for seconds in (0.0, 30.0, 61.0):
        view.update(one._replace(elapsed_seconds=seconds))
    lines = console.file.getvalue().splitlines()
    assert lines == [format_state(one)] * 2
    assert lines[0] == "1 of 2 runs done, 1 running, 75.0% of all frames, ETA 1h 00m"


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
    assert "2 of 2 runs have the restricted action set" in text
    assert "breakout" in text and "pong" in text
    said = capsys.readouterr()
    assert f"open {page}" in said.out and not said.err
