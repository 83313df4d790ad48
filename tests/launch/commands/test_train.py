"""`vantage train` with bad input: one line on stderr, exit code 2, nothing written."""

import json
import socket

import pytest

from launch import config_json
from launch.cli import main as cli


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--game", "pongg"], "did you mean pong"),
        (["--game", "Ms Pacmann"], "ms_pacman"),
        (["--n-step", "0"], "n_step=0 must be at least 1"),
        (["--actors", "0"], "actors=0"),
        (["--envs-per-actor", "-1"], "envs_per_actor=-1"),
        (["--frames", "0"], "frames=0"),
        (
            ["--batch-size", "64", "--warmup-steps", "50"],
            "warmup_steps=50 is less than the 256 steps",
        ),
        (["--error-buffer", "10"], "error_buffer=10 can deadlock"),
        (["--sample-streams", "0"], "sample_streams=0 must be at least 1"),
        (
            ["--n-step", "1", "--max-episode-frames", "8"],
            "max_episode_frames=8 can cut an episode off before 3 steps",
        ),
        (["--samples-per-insert", "0"], "samples_per_insert=0.0"),
        (["--final-epsilon", "1.5"], "final_epsilon=1.5"),
        (["--gamma", "nan"], "gamma=nan"),
        (["--learning-rate", "-0.1"], "learning_rate=-0.1"),
        (["--learning-rate", "nan"], "learning_rate=nan"),
        (["--warmup-steps", "200000"], "replay_capacity_steps=100000 is less than"),
        (["--frames", "20000"], "nothing would be learned"),
        (["--replay-capacity-steps", "100000000000"], "GiB"),
        (["--port", "70000"], "port=70000"),
        (["--seed", "-1"], "seed=-1"),
        (["--sticky-actions", "1"], "sticky_actions=1.0 must be at most 0.99"),
        (["--serial", "--sticky-actions", "0.25"], "sticky_actions=0.25: a serial run resumes"),
        (["--serial", "--prioritized"], "drop --prioritized"),
        (["--resume"], "--resume needs --run-dir"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(refuse, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    assert said in refuse("train", *flags)
    assert not list(tmp_path.iterdir())


def test_a_port_in_use_is_refused(refuse, tmp_path):
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        run = tmp_path / "run"
        message = refuse("train", "--port", port, "--run-dir", str(run))
        assert f"port {port} is in use" in message
        assert not run.exists()


def test_a_run_directory_that_holds_what_cannot_be_resumed_is_left_alone(refuse, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    message = refuse("train", "--run-dir", str(tmp_path))
    assert message.endswith("holds a run already; choose another with --run-dir\n")
    assert (tmp_path / "config.json").read_text() == "{}"


def test_a_folder_with_something_else_in_it_is_left_alone(refuse, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    assert "not an empty folder" in refuse("train", "--run-dir", str(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_directory_that_cannot_be_made_is_refused(refuse, tmp_path):
    (tmp_path / "file").write_text("")
    message = refuse("train", "--run-dir", str(tmp_path / "file" / "run"))
    assert "cannot write run directory" in message


@pytest.mark.parametrize(
    ("flags", "engine", "nodes"),
    [
        ([], "local", {"replay": 1, "learner": 1, "evaluator": 1, "monitor": 1, "actor": 2}),
        (["--isolate", "--actors=1"], "local", {"learner": 1, "actor": 1}),
        (["--serial"], "serial", {}),
    ],
)
def test_a_dry_run_prints_the_resolved_config_and_writes_nothing(
    capsys, tmp_path, monkeypatch, flags, engine, nodes
):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["train", "--dry-run", "--game", "MsPacman", "--run-dir", "r", *flags]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["engine"], printed["run_dir"]) == (engine, "r")
    assert nodes.items() <= printed["nodes"].items()
    assert config_json.from_json(printed["config"]).environment.game == "ms_pacman"
    assert not list(tmp_path.iterdir())


def test_a_dry_run_refuses_what_a_run_would_be_refused(refuse, tmp_path, local_run):
    assert "holds a run already" in refuse("train", "--dry-run", "--run-dir", str(local_run.root))
    resumed = ("train", "--dry-run", "--resume", "--run-dir", str(local_run.root))
    assert "cannot resume with n_step=3" in refuse(*resumed, "--n-step", "3")
    assert [path.name for path in local_run.root.iterdir()] == ["config.json"]
