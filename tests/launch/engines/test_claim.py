"""Which run directories are made or resumed, and which are refused untouched."""

import dataclasses
import json
import os
import time

import pytest

from launch import build
from launch.cli import main as cli
from launch.cli.argv import parse_train
from launch.config import Config
from launch.engines.claim import claim, config_to_resume
from launch.errors import InputError
from launch.run_dir import RunDir
from launch.supervise import status_file
from launch.supervise.status_file import write_host_status


def test_resuming_what_is_not_a_run_is_refused(refuse, tmp_path):
    message = refuse("train", "--run-dir", str(tmp_path), "--resume")
    assert "not a run directory" in message


def test_resuming_with_another_config_names_the_field(refuse, local_run):
    before = local_run.config_file.read_text()
    message = refuse("train", "--run-dir", str(local_run.root), "--resume", "--gamma", "0.9")
    assert "cannot resume with gamma=0.9: the run was started with gamma=0.99" in message
    assert local_run.config_file.read_text() == before


def lengthened(run_dir: RunDir, times: int) -> Config:
    """The config of a run that is resumed for so many times its length."""
    frames = f"--frames={times * run_dir.load_config().frames}"
    return parse_train(["--run-dir", str(run_dir.root), "--resume", frames]).config


def schedules(config: Config, frames: int, updates: int) -> tuple[float, float]:
    """Epsilon and the learning rate at a moment."""
    rate = build.optimizer_options(config).learning_rate
    return build.make_epsilon(config, 0)(frames), float(rate(updates))


@pytest.mark.parametrize("of_this_version", [True, False])
def test_a_run_that_is_lengthened_keeps_the_schedules_it_began_with(tmp_path, of_this_version):
    learner = dataclasses.replace(Config().learner, final_learning_rate=1e-6)
    config = dataclasses.replace(Config(), learner=learner)  # epsilon falls in 2 % of the run
    run_dir = RunDir(tmp_path / "run")
    with claim(run_dir, config, resume=False):
        pass
    if not of_this_version:
        stored = json.loads(run_dir.config_file.read_text())
        del stored["config"]["schedule_frames"]
        run_dir.config_file.write_text(json.dumps(stored))
    moments = [(0, 0), (config.frames // 100, 10**6), (config.frames, 13 * 10**6)]
    expected = [schedules(config, *moment) for moment in moments]
    for times in (2, 3):  # and again
        longer = lengthened(run_dir, times)
        with claim(run_dir, longer, resume=True):
            pass
        stored = run_dir.load_config()
        assert stored.frames == longer.frames > config.frames
        assert [schedules(stored, *moment) for moment in moments] == expected
    assert expected[-1] == (pytest.approx(0.01), pytest.approx(1e-6, rel=0.1))


def test_a_schedule_of_another_length_is_given_at_the_start_and_not_changed_later(refuse, tmp_path):
    run_dir = RunDir(tmp_path / "run")
    config = dataclasses.replace(Config(), schedule_frames=10_000)
    assert config.epsilon_decay_frames == 200
    with claim(run_dir, config, resume=False):
        pass
    flags = ("train", "--run-dir", str(run_dir.root), "--resume", "--schedule-frames", "20000")
    assert "was started with schedule_frames=10000" in refuse(*flags)


def test_a_run_is_not_resumed_for_fewer_frames_than_it_has_trained(refuse, scored_run):
    before = (scored_run / "config.json").read_text()
    flags = ("train", "--run-dir", str(scored_run), "--resume", "--dry-run")
    message = refuse(*flags, "--frames", "1200")
    assert "cannot resume with frames=1200: the run has trained for 1,600 frames" in message
    assert (scored_run / "config.json").read_text() == before
    assert cli.run([*flags, "--frames", "1600"]) == 0
    assert cli.run([*flags]) == 0


@pytest.mark.parametrize(
    ("state", "said", "resume"),
    [
        (None, "continue it with --resume", True),
        ("stopped", "continue it with --resume", True),
        ("finished", "train it longer with --resume --frames", True),
        ("failed for good", "failed for good; choose another with --run-dir", False),
        ("running", "which is alive; look at it with vantage status", False),
    ],
)
def test_a_folder_that_holds_a_run_is_refused_with_a_way_that_works(
    refuse, local_run, state, said, resume
):
    if state is not None:
        write_host_status(local_run.status_file, state, started=1.0)
    message = refuse("train", "--run-dir", str(local_run.root))
    assert "holds a run already" in message and said in message
    assert ("--resume" in message) == resume


def test_another_ratio_belongs_to_what_is_learned_and_is_refused(refuse, local_run):
    flags = ("--resume", "--samples-per-insert", "2")
    message = refuse("train", "--run-dir", str(local_run.root), *flags)
    assert "cannot resume with samples_per_insert=2.0" in message


def test_a_run_that_is_still_alive_is_not_resumed(local_run):
    write_host_status(local_run.status_file, "running", started=1.0)
    with pytest.raises(InputError, match="in use by a run that is still alive"):
        claim(local_run, config_to_resume(local_run.root), resume=True)


def test_a_dead_run_is_resumed_whatever_clocks_and_a_torn_status_say(local_run, monkeypatch):
    monkeypatch.setattr(status_file, "_WATCH_SECONDS", 0.0)
    write_host_status(local_run.status_file, "running", started=1.0)
    written = json.loads(local_run.status_file.read_text())
    ahead = json.dumps({**written, "machine": "another", "updated": time.time() + 7200.0})
    for text in (ahead, ahead[: len(ahead) // 2], ""):
        local_run.status_file.write_text(text)
        claim(local_run, config_to_resume(local_run.root), resume=True).close()


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"config": {}}', "not json"])
def test_a_damaged_config_is_refused_and_kept(refuse, tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    message = refuse("train", "--run-dir", str(tmp_path), "--resume")
    assert "config.json cannot be read" in message
    assert (tmp_path / "config.json").read_text() == text


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_run_directory_others_can_write_to_is_refused_untouched(local_run, refuse, mode):
    before = local_run.config_file.read_bytes()
    local_run.root.chmod(mode)
    message = refuse("train", "--run-dir", str(local_run.root), "--resume")
    assert "can be written by others" in message
    assert local_run.config_file.read_bytes() == before
    assert [p.name for p in local_run.root.iterdir()] == ["config.json"]


def test_a_run_directory_of_someone_else_is_refused(local_run, refuse, monkeypatch):
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    message = refuse("train", "--run-dir", str(local_run.root), "--resume")
    assert "belongs to user" in message
