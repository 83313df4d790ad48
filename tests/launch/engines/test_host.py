"""`vantage host`: hosts that do not belong to the run, and a run that is over."""

import dataclasses
import datetime
import json
import pathlib
import socket
from collections.abc import Callable
from unittest import mock

import pytest

from launch.cli import main as cli
from launch.engines import host
from launch.engines.record import load_engine
from launch.errors import ExitCode
from launch.gate import keys
from launch.run_dir import RunDir
from launch.supervise import status_file
from launch.supervise.namespace import NoNamespaceError
from launch.supervise.status_file import JOB_VARIABLE, write_host_status
from launch.supervise.supervisor import Outcome

ACTOR = ("--groups", "actor")
LEARNER = ("--groups", "replay", "learner", "evaluator", "monitor")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--groups", "actor", "--index", "2"], "index=2, but the run has 2 actor hosts"),
        (["--groups", "actor", "--index", "-1"], "index=-1"),
        (["--groups", "actor", "learner"], "groups=actor learner"),
        (["--groups", "actor", "--run-id", "other"], "holds run c0ffee here, not other"),
    ],
)
def test_a_host_that_does_not_belong_says_its_name_and_why(
    refuse, hosts_run, monkeypatch, flags, said
):
    monkeypatch.setattr("socket.gethostname", lambda: "worker7")
    message = refuse("host", "--run-dir", str(hosts_run.root), *flags)
    assert "host worker7: " in message and said in message


def test_a_host_without_the_shared_folder_says_so(refuse, tmp_path):
    message = refuse("host", "--run-dir", str(tmp_path / "x"), "--groups", "actor")
    assert f"host {socket.gethostname()}: " in message
    assert "on a file system that all hosts share" in message


def test_a_local_run_has_no_hosts(refuse, local_run):
    run = str(local_run.root)
    assert "is a local run" in refuse("host", "--run-dir", run, "--groups", "actor")


def test_a_host_of_a_run_that_is_over_ends_at_once(capsys, hosts_run):
    hosts_run.stop_file.touch()
    assert cli.run(["host", "--run-dir", str(hosts_run.root), "--groups", "actor"]) == 0
    assert "is over" in capsys.readouterr().out


def no_key(folder: pathlib.Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def foreign_key(folder: pathlib.Path) -> None:
    keys.make_keys(folder, "decade", 2)


def unreadable_key(folder: pathlib.Path) -> None:
    for path in folder.iterdir():
        path.write_text("?")


def key_made(days: int) -> Callable[[pathlib.Path], None]:
    """What a host finds whose clock is off by so many days, or which comes so late."""
    then = keys._now() + datetime.timedelta(days=days)

    def make(folder: pathlib.Path) -> None:
        with mock.patch.object(keys, "_now", lambda: then):
            keys.make_keys(folder, "c0ffee", 2)

    return make


@pytest.mark.parametrize("groups", [LEARNER, ACTOR], ids=["learner", "actor"])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (no_key, "'; it is made when the run is started or resumed"),
        (foreign_key, "is of run decade, not of c0ffee"),
        (unreadable_key, "cannot be read"),
        (key_made(-keys.VALID_DAYS - 1), "stop and resume the run, which makes new keys"),
        (key_made(1), "; set the clock"),
    ],
    ids=["none", "foreign", "unreadable", "expired", "clock behind"],
)
def test_a_host_without_a_good_key_is_refused_and_writes_nothing(
    refuse, hosts_run, groups, spoil, said
):
    spoil(hosts_run.keys)
    message = refuse("host", "--run-dir", str(hosts_run.root), *groups)
    assert said in message and "host " in message
    assert not hosts_run.status_file.exists() and not hosts_run.host_file(0).exists()


def test_a_learner_host_that_cannot_isolate_as_it_must_is_refused(refuse, hosts_run, monkeypatch):
    def refused() -> None:
        raise NoNamespaceError("Operation not permitted")

    monkeypatch.setattr("launch.engines.isolate.make_namespace", refused)
    record = load_engine(hosts_run)
    dataclasses.replace(record, isolation="yes").save(hosts_run)
    message = refuse("host", "--run-dir", str(hosts_run.root), *LEARNER)
    assert "--isolate: Operation not permitted" in message
    assert not hosts_run.status_file.exists()


def contents(run_dir: RunDir) -> dict[str, tuple[int, bytes]]:
    """Every file of a run, and when it was written."""
    files = (path for path in run_dir.root.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.fixture
def broken_host(monkeypatch):
    """This host fails its preflight."""
    monkeypatch.setattr(host, "check_host", lambda *_, **__: (ExitCode.FAILED, "cannot import jax"))


@pytest.fixture
def sound_host(monkeypatch):
    """This host passes its preflight, and trains to the end of a run in no time."""
    monkeypatch.setattr(host, "check_host", lambda *_, **__: (ExitCode.DONE, ""))
    monkeypatch.setattr(host, "supervise_nodes", lambda *_, **__: Outcome.FINISHED)


@pytest.mark.usefixtures("broken_host")
@pytest.mark.parametrize("locked", [True, False])
def test_a_second_learner_host_is_refused_and_touches_nothing(hosts_run, refuse, locked):
    held = hosts_run.lock()  # by this process, which stands for the owner
    write_host_status(hosts_run.status_file, "running", started=1.0)
    if not locked:  # the file system has no locks
        held.close()
    before = contents(hosts_run)
    message = refuse("host", "--run-dir", str(hosts_run.root), *LEARNER)
    assert f"belongs to host {socket.gethostname()} (pid " in message
    assert contents(hosts_run) == before
    held.close()


@pytest.mark.usefixtures("broken_host")
def test_a_second_learner_host_is_refused_while_the_first_one_checks_itself(hosts_run, refuse):
    write_host_status(hosts_run.status_file, "preflight", started=1.0)
    with hosts_run.lock():
        refuse("host", "--run-dir", str(hosts_run.root), *LEARNER)
    assert not hosts_run.stop_file.exists()


@pytest.mark.usefixtures("broken_host")
@pytest.mark.parametrize("owner", ["nobody", "dead"])
def test_a_learner_host_that_owns_the_run_and_cannot_train_ends_it(
    hosts_run, monkeypatch, capsys, owner
):
    monkeypatch.setattr(status_file, "_WATCH_SECONDS", 0.0)
    if owner == "dead":
        write_host_status(hosts_run.status_file, "running", started=1.0)
        stored = json.loads(hosts_run.status_file.read_text())
        hosts_run.status_file.write_text(json.dumps({**stored, "machine": "another"}))
    assert cli.run(["host", "--run-dir", str(hosts_run.root), *LEARNER]) == ExitCode.FAILED
    assert "cannot import jax" in capsys.readouterr().err
    assert hosts_run.stop_file.exists()


@pytest.mark.usefixtures("sound_host")
@pytest.mark.parametrize(("job", "code"), [("4711", 0), ("4712", 2)])
def test_the_owners_own_job_started_elsewhere_takes_over_and_no_other_job_does(
    hosts_run, monkeypatch, job, code
):
    monkeypatch.setenv(JOB_VARIABLE, "4711")
    write_host_status(hosts_run.status_file, "running", started=1.0)
    monkeypatch.setenv(JOB_VARIABLE, job)
    with hosts_run.lock():
        assert cli.run(["host", "--run-dir", str(hosts_run.root), *LEARNER]) == code
    assert hosts_run.stop_file.exists() == (code == 0)


@pytest.mark.usefixtures("sound_host")
def test_a_learner_host_that_was_replaced_meanwhile_does_not_end_the_run(hosts_run, monkeypatch):
    def replaced(*_: object, **__: object) -> Outcome:
        hosts_run.publish_address("another:1")
        return Outcome.FAILED

    monkeypatch.setattr(host, "supervise_nodes", replaced)
    assert cli.run(["host", "--run-dir", str(hosts_run.root), *LEARNER]) == ExitCode.FAILED
    assert not hosts_run.stop_file.exists()


@pytest.mark.parametrize("groups", [LEARNER, ACTOR])
def test_how_a_run_ended_stays_readable_when_a_host_comes_too_late(hosts_run, groups):
    write_host_status(hosts_run.status_file, "finished", started=1.0)
    hosts_run.stop_file.touch()
    assert cli.run(["host", "--run-dir", str(hosts_run.root), *groups]) == 0
    assert json.loads(hosts_run.status_file.read_text())["state"] == "finished"
