"""Flags the parser refuses, or that the engine would ignore; defaults of a resumed run."""

import pytest

from launch.cli.argv import parse_train
from launch.engines.options import HostsOptions, SlurmOptions
from launch.engines.record import EngineRecord


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--algorithm", "sarsa"], "algorithm='sarsa'"),
        (["--network", "resnet"], "network='resnet'"),
        (["--frames", "many"], "--frames: 'many' is not a whole number; write it as 200M"),
        (["--frames", "1.5"], "--frames: '1.5' is not a whole number"),
        (["--frames", "2e18k"], "frames=2000000000000000000000 must be at most"),
        (["--frames"], "--frames needs a value; see vantage train --help"),
        (["--learning-rate", "fast"], "--learning-rate: 'fast' is not a number"),
        (["--epsilon-decay-frames", "None", "--speed"], "unknown flag --speed"),
        (["--lr", "3e-4"], "unknown flag --lr; did you mean --learning-rate"),
        (["--batch=64"], "unknown flag --batch; did you mean --batch-size?"),
        (["--sead", "3"], "unknown flag --sead; did you mean --seed"),
        (["--xyzzy"], "unknown flag --xyzzy; see vantage train --help"),
        (["--no-game"], "--game takes a value"),
        (["--optimizer", "adm"], "'adm' is not one of rmsprop, adam; did you mean adam?"),
        (["pong"], "unexpected argument 'pong'"),
    ],
)
def test_a_bad_flag_is_refused_in_one_line(refuse, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    assert said in refuse("train", *flags)
    assert not list(tmp_path.iterdir())


def test_what_a_command_needs_is_named(refuse):
    assert "vantage status needs RUN; see vantage status --help" in refuse("status")
    assert "vantage scale needs --actor-hosts" in refuse("scale", "run")


@pytest.mark.parametrize(
    ("text", "frames"),
    [("60k", 60_000), ("200M", 200_000_000), ("1e6", 10**6), ("1.5M", 1_500_000), ("7_000", 7000)],
)
def test_whole_numbers_may_be_written_short(text, frames):
    config = parse_train(["--frames", text, "--epsilon-decay-frames", text]).config
    assert (config.frames, config.epsilon_decay_frames) == (frames, frames)


def test_a_number_may_be_none_where_its_default_may():
    flags = ["--epsilon-decay-frames", "None", "--learning-rate", "None"]
    config = parse_train(flags).config
    assert (config.actor.epsilon_decay_frames, config.learner.learning_rate) == (None, None)


@pytest.mark.parametrize("game", ["Pong", "PONG", "MsPacman", "ms-pacman", "Ms. Pacman", "UpNDown"])
def test_a_game_has_one_name_however_it_is_written(game):
    name = parse_train(["--game", game]).config.environment.game
    assert name in ("pong", "ms_pacman", "up_n_down")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--engine", "slurm", "--actors", "64"], "give --actor-hosts and --actors-per-host"),
        (["--actor-hosts=8"], "needs --engine slurm, hosts or kubernetes, not local"),
        (["--engine=hosts", "--account=lab"], "--account needs --engine slurm, not hosts"),
    ],
)
def test_a_flag_that_the_engine_would_ignore_is_refused(refuse, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    assert said in refuse("train", *flags)
    assert not list(tmp_path.iterdir())


def test_resuming_keeps_the_engine_and_its_options(hosts_run):
    EngineRecord("slurm", "c0ffee", HostsOptions(5, 3), SlurmOptions(account="lab")).save(hosts_run)
    flags = parse_train(["--resume", "--run-dir", str(hosts_run.root)])
    assert flags.request.engine == "slurm"
    assert (flags.hosts.actor_hosts, flags.slurm.account) == (5, "lab")
