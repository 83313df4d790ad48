"""Searches: steps, resumption and refusals; one with a real run in it."""

import csv
import json
import pathlib
import shutil
import signal

import pytest
from matplotlib.figure import Figure

from launch.cli import main as cli
from launch.cli.argv import parse_train
from launch.suite import slurm as suite_slurm
from launch.suite import suite_run
from launch.suite.plan import PlannedRun
from launch.tune import run as tune_loop
from launch.tune.folder import claim_folder
from launch.tune.plan import TuneRequest, plan_trials
from tests.launch.suite.small_suite import TINY, finish
from tests.launch.tiny_run import TINY_FLAGS

# Of Pong; a human's 14.6 is 1, a random player's -20.7 is 0.
RETURNS = {8.33e-5: -20.0, 2.5e-4: -15.0, 7.5e-4: -10.0, 2.25e-3: -12.0, 6.75e-3: -20.0}


def run_tune(out: pathlib.Path, *flags: str) -> int:
    args = ["tune", "--games", "pong", "--algorithm", "va", "--start", "2.5e-4"]
    return cli.run([*args, "--frames", "1600", "--out", str(out), *flags, "--", *TINY])


def rates(out: pathlib.Path) -> list[dict[str, str]]:
    with (out / "records" / "rates.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_search_moves_to_the_better_rate_until_neither_improves(tmp_path, scored, capsys):
    scored.returns = RETURNS
    assert run_tune(tmp_path / "t") == 0
    first = [f"pong-va-learning_rate={rate}-seed1" for rate in ("8.33e-05", "0.00025", "0.00075")]
    assert scored.names == [*first, "pong-va-learning_rate=0.00225-seed1"]
    said = capsys.readouterr().out
    assert "va: neither improves after 1 move: --algorithm va --learning-rate 0.00075" in said
    assert "for a suite: --learning-rates va=0.00075" in said
    assert [row["learning_rate"] for row in rates(tmp_path / "t") if row["best"] == "True"] == [
        "0.00075"
    ]
    best = (-10 + 20.7) / (14.6 + 20.7)
    assert f"{best:.3f}" in said
    assert (tmp_path / "t" / "records" / "rates.png").read_bytes().startswith(b"\x89PNG")
    plan = (tmp_path / "t" / "records" / "plan.txt").read_text().splitlines()
    assert len(plan) == 4 and all("--learning-rate" in line for line in plan)
    # The same command again runs nothing, and says the same.
    assert run_tune(tmp_path / "t") == 0
    assert len(scored.names) == 4
    assert "--learning-rates va=0.00075" in capsys.readouterr().out


def test_a_search_whose_folder_is_lost_goes_by_the_runs_that_are_kept(tmp_path, scored, capsys):
    scored.returns = RETURNS
    out, records = tmp_path / "t", tmp_path / "records"
    assert run_tune(out, "--records", str(records)) == 0
    table = (records / "rates.csv").read_text()
    shutil.rmtree(out)
    assert run_tune(out, "--records", str(records)) == 0
    assert len(scored.names) == 4  # of the first time
    assert "4 finished runs taken back" in capsys.readouterr().out
    assert (records / "rates.csv").read_text() == table


def test_the_picture_names_rates_as_they_are_typed(tmp_path, scored, monkeypatch):
    scored.returns = RETURNS
    labels = []
    real = Figure.savefig

    def look_and_save(figure, *args, **kwargs):
        [axes] = figure.axes
        labels.append([label.get_text() for label in axes.get_xticklabels(which="both")])
        real(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", look_and_save)
    assert run_tune(tmp_path / "t") == 0
    assert labels[-1] == ["8.33e-05", "0.00025", "0.00075", "0.00225"]


def test_algorithms_have_searches_of_their_own_and_more_seeds_extend_them(tmp_path, scored):
    scored.returns = RETURNS
    assert run_tune(tmp_path / "t", "--algorithms", "va", "q") == 0
    assert len(scored.names) == 8
    assert run_tune(tmp_path / "t", "--algorithms", "va", "q", "--seeds", "2") == 0
    assert len(scored.names) == 16 == len(set(scored.names))
    assert all(name.endswith("seed2") for name in scored.names[8:])


def test_a_rate_that_diverges_is_worse_than_any_other_and_not_tried_again(tmp_path, scored):
    scored.returns = {**RETURNS, 7.5e-4: None}
    assert run_tune(tmp_path / "t") == 0
    assert [row["learning_rate"] for row in rates(tmp_path / "t") if row["best"] == "True"] == [
        "0.00025"
    ]
    assert run_tune(tmp_path / "t") == 0
    assert len(scored.names) == 3


def test_where_every_rate_diverges_there_is_no_rate_to_paste(tmp_path, scored, capsys):
    scored.returns = dict.fromkeys(RETURNS)
    assert run_tune(tmp_path / "t") == 1
    said = capsys.readouterr()
    assert "diverged at every rate" in said.err and "--learning-rates" not in said.out


def test_a_run_that_fails_otherwise_stops_the_search_and_is_tried_again(tmp_path, scored, capsys):
    scored.returns = RETURNS
    scored.failing = {"pong-va-learning_rate=0.00025-seed1"}
    assert run_tune(tmp_path / "t") == 1
    assert (
        "failed: va (learning_rate=0.00025) on pong, seed 1: exit code 1: boom"
        in capsys.readouterr().out
    )
    scored.failing = set()
    assert run_tune(tmp_path / "t") == 0
    assert scored.names[3:] == [
        "pong-va-learning_rate=0.00025-seed1",
        "pong-va-learning_rate=0.00225-seed1",
    ]


def test_an_interrupted_search_continues_where_it_was(tmp_path, scored, monkeypatch, capsys):
    scored.returns = RETURNS
    real = suite_run.SuiteRun.start

    def start_and_interrupt(self, cores):
        real(self, cores)
        if self.planned.name == "pong-va-learning_rate=0.00025-seed1":
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(suite_run.SuiteRun, "start", start_and_interrupt)
    assert run_tune(tmp_path / "t") == 130
    assert "the same command continues" in capsys.readouterr().out
    monkeypatch.setattr(suite_run.SuiteRun, "start", real)
    assert run_tune(tmp_path / "t") == 0
    assert len(scored.names) == 4 == len(set(scored.names))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--start", "0"], "start=0.0 must be at least 1e-12"),
        (["--start", "-1"], "start=-1.0 must be at least 1e-12"),
        (["--start", "nan"], "start=nan must be at least 1e-12"),
        (["--max-moves", "0"], "max_moves=0 must be at least 1"),
        (["--seeds", "0"], "seeds=0 must be at least 1"),
        (["--games", "pongg"], "did you mean pong"),
        (["--games", "atari57"], "a subset of games"),
        (["--algorithm", "vaa"], "algorithm='vaa'"),
        (["--engine", "slurm"], "no sbatch in PATH"),
        (["--", "--learning-rate", "1"], "--learning-rate is what is tuned"),
    ],
)
def test_a_bad_search_is_refused_in_one_line(tmp_path, scored, monkeypatch, capsys, flags, said):
    monkeypatch.setenv("PATH", "")
    assert run_tune(tmp_path / "t", *flags) == 2
    message = capsys.readouterr().err
    assert said in message and message.count("\n") == 1
    assert not scored.names and not (tmp_path / "t").exists()


def test_the_folder_of_another_search_or_of_something_else_is_refused(tmp_path, scored, capsys):
    scored.returns = {1e-4: 1.0, 3.33e-5: 0.0, 3e-4: 0.0}
    assert run_tune(tmp_path / "t", "--start", "1e-4") == 0
    assert run_tune(tmp_path / "t") == 2
    assert "holds a search with start=0.0001, and this one has start=0.00025" in (
        capsys.readouterr().err
    )
    assert run_tune(tmp_path / "t", "--start", "1e-4", "--games", "breakout") == 2
    assert "holds a search with games=pong" in capsys.readouterr().err
    assert run_tune(tmp_path / "t", "--start", "1e-4", "--full-action-set") == 2
    assert "holds a run with full_action_set=False" in capsys.readouterr().err
    (tmp_path / "t" / "tune.json").write_text("[")
    assert run_tune(tmp_path / "t", "--start", "1e-4") == 2
    assert "tune.json cannot be read" in capsys.readouterr().err
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "suite.json").write_text(json.dumps({"runs": [], "suite_id": "a"}))
    assert run_tune(tmp_path / "suite") == 2
    assert "something else than a search" in capsys.readouterr().err


def test_on_slurm_each_call_queues_the_runs_of_the_next_step(tmp_path, monkeypatch, capsys):
    """With Slurm's own commands replaced, and its jobs done at once."""
    tasks: dict[int, PlannedRun] = {}

    def script(slurm, job_name, of_the_script, out):
        tasks.clear()
        tasks.update(of_the_script)
        return ""

    def submit(path, options):
        for run in tasks.values():
            finish(run, score=RETURNS[run.config.learner.learning_rate])
        return "7"

    monkeypatch.setattr(suite_slurm, "suite_script", script)
    for module in (suite_slurm, tune_loop):
        monkeypatch.setattr(module, "check_partitions", lambda slurm: None)
    monkeypatch.setattr(suite_slurm.cluster, "test_submission", lambda script: None)
    monkeypatch.setattr(suite_slurm.cluster, "queue", lambda names: [])
    monkeypatch.setattr(suite_slurm.cluster, "submit", submit)
    for expected in ({8.33e-5, 2.5e-4, 7.5e-4}, {2.25e-3}):
        assert run_tune(tmp_path / "t", "--engine", "slurm") == 0
        assert {run.config.learner.learning_rate for run in tasks.values()} == expected
        assert "the same command goes on with the search" in capsys.readouterr().out
    tasks.clear()
    assert run_tune(tmp_path / "t", "--engine", "slurm") == 0
    assert not tasks and "va=0.00075" in capsys.readouterr().out


@pytest.mark.usefixtures("restored_signals")
def test_a_real_run_is_scored_and_found_best(tmp_path, capsys):
    """One rate is really trained; its neighbors are done, with scores no game of Pong has."""
    flags = [*(flag for flag in TINY_FLAGS if "frames=6000" not in flag), "--serial"]
    request = TuneRequest(start=1e-4, frames=1600, out=tmp_path / "t")
    claim_folder(request)
    parse = lambda args: parse_train(args).config  # noqa: E731
    for trial in plan_trials(request, {"va": (-1, 1)}, flags, parse):
        finish(trial.runs[0], score=-100.0)
    args = ["tune", "--games", "pong", "--start", "1e-4", "--frames", "1600"]
    assert cli.run([*args, "--out", str(request.out), "--", *flags]) == 0, capsys.readouterr()
    assert "for a suite: --learning-rates va=0.0001" in capsys.readouterr().out
    by_rate = {row["learning_rate"]: float(row["human_normalized"]) for row in rates(request.out)}
    assert set(by_rate) == {"3.33e-05", "0.0001", "0.0003"}
    assert by_rate["0.0001"] > -0.1
