"""Whose run directories a command takes: its own user's alone, or anyone's."""

import os

import pytest

from launch.cli import main as cli
from launch.errors import InputError
from report.metrics_file import MetricsFile

ACTING = [
    ("train", "--resume", "--run-dir", "RUN"),
    ("eval", "RUN"),
    ("watch", "RUN", "--out", "x.mp4"),
    ("stop", "RUN"),
    ("scale", "RUN", "--actor-hosts", "2"),
    ("fetch", "RUN", "copy"),
    ("host", "--run-dir", "RUN", "--groups", "actor"),
]
READING = [("status", "RUN"), ("logs", "RUN"), ("compare", "RUN", "--out", "OUT")]


@pytest.mark.parametrize("args", ACTING, ids=lambda args: args[0])
def test_who_acts_on_a_run_takes_no_folder_that_others_can_write_to(local_run, refuse, args):
    local_run.root.chmod(0o777)
    args = [str(local_run.root) if arg == "RUN" else arg for arg in args]
    assert "can be written by others (mode 777)" in refuse(*args)
    assert [path.name for path in local_run.root.iterdir()] == ["config.json"]


@pytest.mark.parametrize("args", ACTING, ids=lambda args: args[0])
def test_who_acts_on_a_run_takes_no_folder_of_someone_else(local_run, refuse, monkeypatch, args):
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    args = [str(local_run.root) if arg == "RUN" else arg for arg in args]
    assert "belongs to user" in refuse(*args)


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_who_only_reads_takes_anyones_folder(local_run, tmp_path, args):
    row = {"time": 1.0, "role": "evaluator", "frames": 4, "eval_return": 1.0}
    MetricsFile(local_run.metrics_file).append([row])
    local_run.root.chmod(0o777)
    places = {"RUN": str(local_run.root), "OUT": str(tmp_path / "out.png")}
    assert cli.run([places.get(arg, arg) for arg in args]) == 0


@pytest.mark.parametrize(
    "name",
    ["metrics.jsonl", "status.json", "stop", "lock", "logs/learner-0.log", "checkpoints/x.npz"],
)
def test_a_link_in_the_place_of_a_file_is_refused_and_what_it_leads_to_is_left_alone(
    local_run, tmp_path, refuse, name
):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    link = local_run.root / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(mine)
    message = refuse("train", "--run-dir", str(local_run.root), "--resume")
    assert f"'{link}' is a symbolic link" in message
    assert mine.read_text() == "mine"


def test_a_dangling_link_is_refused_too(local_run, tmp_path):
    (local_run.root / "metrics.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a file"):
        local_run.check_own()


def test_a_folder_may_be_a_link_to_one_of_the_owners_own(local_run, tmp_path):
    larger = tmp_path / "larger"
    larger.mkdir(mode=0o755)
    (local_run.root / "replay").symlink_to(larger)
    local_run.check_own()
    (larger / "chunks").touch()
    (larger / "chunks").chmod(0o666)
    with pytest.raises(InputError, match=r"chunks' can be written by others \(mode 666\)"):
        local_run.check_own()
    (larger / "chunks").unlink()
    larger.chmod(0o777)
    with pytest.raises(InputError, match=r"replay' can be written by others \(mode 777\)"):
        local_run.check_own()


@pytest.mark.parametrize("name", ["checkpoints", "checkpoints/checkpoint-1.npz", "config.json"])
def test_what_others_can_write_to_in_a_folder_they_can_enter_is_refused(local_run, name):
    (local_run.root / "checkpoints").mkdir()
    (local_run.root / "checkpoints" / "checkpoint-1.npz").touch()
    (local_run.root / name).chmod(0o777)
    local_run.check_own()  # nobody else can enter the run directory
    local_run.root.chmod(0o755)
    with pytest.raises(InputError, match=f"{name}' can be written by others"):
        local_run.check_own()


def test_a_file_that_a_live_run_replaces_meanwhile_is_no_error(local_run, monkeypatch):
    gone = local_run.root / "gone"
    entries = [*local_run.root.iterdir(), gone]
    monkeypatch.setattr(type(gone), "iterdir", lambda path: iter(entries))
    local_run.check_own()
