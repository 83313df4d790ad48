"""Bad input: one line on stderr, exit code 2, nothing written."""

import json
import socket

import pytest

from launch.cli import main as cli


def refuse(capsys, *args: str) -> str:
    """Runs a command that must be refused; returns its one line."""
    try:
        code = cli.run(args)
    except SystemExit as stopped:
        # The flag parser ends the process itself, with its own boxed message.
        assert stopped.code == 2
        return capsys.readouterr().err
    assert code == 2
    message = capsys.readouterr().err
    assert message.startswith("vantage: error: ")
    assert message.count("\n") == 1
    return message


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--game", "pongg"], "did you mean pong"),
        (["--game", "MsPacman"], "ms_pacman"),
        (["--n-step", "0"], "n_step=0 must be at least 1"),
        (["--actors", "0"], "actors=0"),
        (["--envs-per-actor", "-1"], "envs_per_actor=-1"),
        (["--frames", "0"], "frames=0"),
        (
            ["--batch-size", "64", "--warmup-steps", "50"],
            "warmup_steps=50 is less than the 256 items",
        ),
        (["--error-buffer", "10"], "error_buffer=10 can deadlock"),
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
        (["--resume"], "--resume needs --run-dir"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(capsys, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    assert said in refuse(capsys, "train", *flags)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--actors", "0"], "actors=0"),
        (["--game", "pongg"], "pongg"),
        (["--seconds", "0"], "seconds=0"),
        (["--sweep-actors", "1,zero"], "1,zero"),
        (["--json", "/dev/null/out.json"], "/dev/null/out.json"),
    ],
)
def test_a_profile_of_nothing_is_refused_in_one_line(capsys, flags, said):
    assert said in refuse(capsys, "profile", *flags)


@pytest.mark.parametrize(
    "flags", [["--algorithm", "sarsa"], ["--network", "resnet"], ["--frames", "many"], ["--speed"]]
)
def test_a_bad_flag_is_refused_by_the_parser(capsys, tmp_path, monkeypatch, flags):
    monkeypatch.chdir(tmp_path)
    assert flags[-1].lstrip("-") in refuse(capsys, "train", *flags)
    assert not list(tmp_path.iterdir())


def test_an_unknown_command_lists_the_commands(capsys):
    assert "choose from train, tabular, profile, status" in refuse(capsys, "trian")


def test_no_command_prints_the_usage_and_fails(capsys):
    assert cli.run([]) == 2
    assert "usage: vantage" in capsys.readouterr().out


def test_a_port_in_use_is_refused(capsys, tmp_path):
    with socket.socket(socket.AF_INET6) as taken:
        taken.bind(("::", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        run = tmp_path / "run"
        message = refuse(capsys, "train", "--port", port, "--run-dir", str(run))
        assert f"port {port} is in use" in message
        assert not run.exists()


def test_a_run_directory_that_holds_a_run_is_left_alone(capsys, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert "--resume" in refuse(capsys, "train", "--run-dir", str(tmp_path))
    assert (tmp_path / "config.json").read_text() == "{}"


def test_a_folder_with_something_else_in_it_is_left_alone(capsys, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    assert "not an empty folder" in refuse(capsys, "train", "--run-dir", str(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_directory_that_cannot_be_made_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    message = refuse(capsys, "train", "--run-dir", str(tmp_path / "file" / "run"))
    assert "cannot write run directory" in message


def test_resuming_what_is_not_a_run_is_refused(capsys, tmp_path):
    message = refuse(capsys, "train", "--run-dir", str(tmp_path), "--resume")
    assert "not a run directory" in message


def test_resuming_with_another_config_names_the_field(capsys, tmp_path):
    from launch.config import PRESETS
    from launch.run_dir import RunDir

    RunDir(tmp_path).create(PRESETS["cpu"])
    before = (tmp_path / "config.json").read_text()
    message = refuse(capsys, "train", "--run-dir", str(tmp_path), "--resume", "--gamma", "0.9")
    assert "cannot resume with gamma=0.9: the run was started with gamma=0.99" in message
    assert (tmp_path / "config.json").read_text() == before


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"config": {}}', "not json"])
def test_a_damaged_config_is_refused_and_kept(capsys, tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    message = refuse(capsys, "train", "--run-dir", str(tmp_path), "--resume")
    assert "config.json cannot be read" in message
    assert (tmp_path / "config.json").read_text() == text


def test_status_and_stop_of_what_is_not_a_run_are_refused(capsys, tmp_path):
    assert "not a run directory" in refuse(capsys, "status", str(tmp_path / "nothing"))
    assert "not a run directory" in refuse(capsys, "stop", str(tmp_path / "nothing"))


def test_stopping_a_run_that_does_not_run_is_refused(capsys, tmp_path):
    from launch.config import PRESETS
    from launch.run_dir import RunDir

    RunDir(tmp_path).create(PRESETS["cpu"])
    assert "is not running" in refuse(capsys, "stop", str(tmp_path))


def test_status_of_a_run_never_started_is_json_too(capsys, tmp_path):
    from launch.config import PRESETS
    from launch.run_dir import RunDir

    RunDir(tmp_path).create(PRESETS["cpu"])
    assert cli.run(["status", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "not started"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--seeds", "0"], "seeds=0 must be at least 1"),
        (["--epsilon", "1.5"], "epsilon=1.5 must be in [0, 1]"),
        (["--epsilons", "0.5", "-0.1"], "epsilons=-0.1 must be in [0, 1]"),
        (["--updates", "75"], "updates=75"),
        (["--out", "file/out"], "out=file/out cannot be made"),
    ],
)
def test_a_bad_tabular_study_is_refused_in_one_line(capsys, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert said in refuse(capsys, "tabular", *flags)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
