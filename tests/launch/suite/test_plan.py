"""The grid of a suite: what is in it, and what is refused before anything starts."""

import sys

import pytest

from actors.games import reference_scores
from launch.cli.argv import parse_train
from launch.engines.claim import claim
from launch.suite.plan import train_command
from report.methods import methods_of
from report.runs import find_runs
from tests.launch.suite import small_suite
from tests.launch.suite.small_suite import TINY, finish, plan, run_suite


def test_a_run_is_an_ordinary_train_command(tmp_path):
    [first, *_] = plan(tmp_path, "--full-action-set", "--preset", "cpu")
    command = train_command(first)
    assert command[0] == sys.executable
    assert command[3:] == [
        *("train", "--algorithm", "va", "--preset", "cpu", "--frames", "1600"),
        *("--full-action-set", *TINY, "--game", "pong", "--seed", "1"),
        *("--run-dir", str(tmp_path / "pong-va-seed1")),
    ]
    assert first.config == parse_train(command[4:-2]).config
    first.run_dir.create(first.config)
    assert train_command(first)[-1] == "--resume"


def test_a_run_that_was_started_belongs_to_the_same_suite_and_to_a_longer_one(tmp_path):
    [first, *_] = plan(tmp_path)
    with claim(first.run_dir, first.config, resume=False):
        pass
    for flags in ((), ("--frames", "3200")):
        [again, *_] = plan(tmp_path, *flags)
        resumed = parse_train(train_command(again)[4:]).config
        assert resumed.frames == again.config.frames
        assert resumed.scheduled_frames == first.config.frames


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


def test_an_algorithm_may_have_a_learning_rate_of_its_own(tmp_path):
    by_algorithm = {run.algorithm: run for run in plan(tmp_path, "--learning-rates", "q=3e-4")}
    assert by_algorithm["q"].config.learner.learning_rate == 3e-4
    assert by_algorithm["va"].config.learner.learning_rate == 1e-4  # the preset's
    assert parse_train(train_command(by_algorithm["q"])[4:]).config == by_algorithm["q"].config


def test_a_sweep_adds_axes_to_the_grid_and_methods_to_the_report(tmp_path):
    sweep = ("--sweep", "learning-rate=1e-4,3e-4", "prioritized=true,false")
    runs = plan(tmp_path, *sweep)
    assert len(runs) == 2 * 2 * 4
    assert len({run.name for run in runs}) == len(runs)
    names = [run.name for run in runs if run.game == "pong" and run.algorithm == "va"]
    assert names[0] == "pong-va-learning_rate=0.0001-prioritized=True-seed1"
    assert "(learning_rate=0.0003, prioritized=False) on pong, seed 1" in runs[3].title
    for run in runs:
        assert parse_train(train_command(run)[4:]).config == run.config
        finish(run)
    methods = methods_of(find_runs(tmp_path, reference_scores(), print), print)
    assert [name for name in methods if name.startswith("va")] == [
        f"va (learning_rate={rate}, prioritized={prioritized})"
        for rate in ("0.0001", "0.0003")
        for prioritized in (False, True)
    ]
    assert all(len(members) == 2 for members in methods.values())  # two games


def test_runs_of_a_suite_may_share_a_config_file(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text('preset = "paper"\ngamma = 0.9\nseed = 77')
    config = ("--config", str(tmp_path / "mine.toml"))
    monkeypatch.setattr(small_suite, "TINY", (*TINY, *config))
    runs = plan(tmp_path)
    assert {(run.config.learner.gamma, run.config.seed) for run in runs} == {(0.9, 1)}
    assert all(parse_train(train_command(run)[4:]).config == run.config for run in runs)


def test_fresh_seeds_follow_the_first_one(tmp_path):
    runs = plan(tmp_path, "--seeds", "2", "--first-seed", "4")
    assert {run.config.seed for run in runs} == {4, 5}
    assert {run.run_dir.root.name.rpartition("-")[2] for run in runs} == {"seed4", "seed5"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--games", "pongg"], "did you mean pong"),
        (["--games", "pong", "pong"], "games=pong pong: each is needed once"),
        (["--seeds", "0"], "seeds=0 must be at least 1"),
        (["--first-seed", "0"], "first_seed=0 must be at least 1"),
        (["--parallel", "0"], "parallel=0 must be at least 1"),
        (["--frames", "0"], "frames=0"),
        (["--ablation", "restricted-actions", "--full-action-set"], "exclude each other"),
        (["--learner-partition", "gpu"], "--learner-partition needs --engine slurm, not local"),
        (["--engine", "slurm", "--actor-mem", "1G"], "a run of a suite has one host"),
        (["--engine", "slurm", "--learner-cpus", "0"], "learner_cpus=0 must be at least 1"),
        (["--engine", "slurm"], "no sbatch in PATH"),
        (["--", "--engine", "slurm"], "give it before the bare --"),
        (["--learning-rates", "va"], "'va' is not NAME=RATE"),
        (["--learning-rates", "va=fast"], "'va=fast' is not NAME=RATE"),
        (["--learning-rates", "va=1e-4", "va=2e-4"], "'va=2e-4' is not NAME=RATE with one rate"),
        (["--learning-rates", "dueling=1e-4"], "for one of va, q"),
        (["--learning-rates", "va=0"], "learning_rate=0.0 must be greater than 0"),
        (["--learning-rates", "va=1", "--", "--learning-rate=2"], "exclude each other"),
        (["--sweep", "lr=1,2"], "'lr' is no setting; did you mean learning_rate?"),
        (["--sweep", "learning_rate"], "'learning_rate' is not NAME=VALUE,VALUE"),
        (["--sweep", "gamma=0.9,"], "'gamma=0.9,' is not NAME=VALUE,VALUE"),
        (["--sweep", "gamma=0.9,high"], "--gamma: 'high' is not a number"),
        (["--sweep", "gamma=0.9,2"], "gamma=2.0 must be at most 1"),
        (["--sweep", "gamma=0.9,0.90"], "gamma=0.9: each value is needed once"),
        (["--sweep", "gamma=0.9", "gamma=0.8"], "--sweep gamma is given twice"),
        (["--sweep", "seed=1,2"], "use --seeds"),
        (["--sweep", "actors=1,2"], "--sweep actors: runs that differ in it alone"),
        (["--sweep", "prioritized=1"], "prioritized=1 must be true or false"),
        (["--sweep", "final_epsilon=0.1", "--ablation", "final-epsilon-0.5"], "exclude each other"),
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
