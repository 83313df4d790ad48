"""Which run directories are made or resumed, and which are refused untouched."""

import json
import os
import time

import pytest

from launch.engines.claim import claim
from launch.errors import InputError
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


def test_a_run_that_is_still_alive_is_not_resumed(local_run):
    write_host_status(local_run.status_file, "running", started=1.0)
    with pytest.raises(InputError, match="in use by a run that is still alive"):
        claim(local_run, local_run.load_config(), resume=True)


def test_a_dead_run_is_resumed_whatever_clocks_and_a_torn_status_say(local_run, monkeypatch):
    monkeypatch.setattr(status_file, "_WATCH_SECONDS", 0.0)
    write_host_status(local_run.status_file, "running", started=1.0)
    written = json.loads(local_run.status_file.read_text())
    ahead = json.dumps({**written, "machine": "another", "updated": time.time() + 7200.0})
    for text in (ahead, ahead[: len(ahead) // 2], ""):
        local_run.status_file.write_text(text)
        claim(local_run, local_run.load_config(), resume=True).close()


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
