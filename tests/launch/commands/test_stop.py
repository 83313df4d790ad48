"""`vantage stop` of what does not run, and of runs whose jobs are in a queue."""

import dataclasses
import errno
import pathlib

import pytest

from launch.cli import main as cli
from launch.engines.record import load_engine
from launch.supervise.status_file import write_host_status


def test_stopping_what_is_not_a_run_is_refused(refuse, tmp_path):
    assert "not a run directory" in refuse("stop", str(tmp_path / "nothing"))


@pytest.mark.parametrize("kind", ["local_run", "hosts_run"])
def test_stopping_a_run_that_does_not_run_is_refused(refuse, request, kind):
    run = request.getfixturevalue(kind)
    assert "is not running; nothing to stop" in refuse("stop", str(run.root))
    assert not run.stop_file.exists()


def test_a_run_that_does_not_stop_in_time_is_named_with_its_process(refuse, local_run):
    write_host_status(local_run.status_file, "running", started=1.0)
    message = refuse("stop", str(local_run.root), "--timeout", "0")
    assert "is still stopping after 0 s; wait with --timeout, or look at its logs (pid " in message
    assert local_run.stop_file.exists()


@pytest.mark.parametrize(
    ("state", "code"),
    [("stopped", 0), ("finished", 0), ("stopped without a last checkpoint", 1), ("failed", 1)],
)
def test_a_run_that_does_not_end_in_order_is_no_success(
    local_run, monkeypatch, capsys, state, code
):
    write_host_status(local_run.status_file, "running", started=1.0)
    monkeypatch.setattr(
        "launch.commands.stop.time.sleep",
        lambda seconds: write_host_status(local_run.status_file, state, started=1.0),
    )
    assert cli.run(["stop", str(local_run.root)]) == code
    assert capsys.readouterr().out == f"{local_run.root}: {state}\n"


def test_a_stop_that_cannot_be_asked_for_names_the_way_out(local_run, monkeypatch, refuse):
    write_host_status(local_run.status_file, "running", started=1.0)

    def full(path: pathlib.Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "touch", full)
    message = refuse("stop", str(local_run.root))
    assert "No space left on device; end the run with Ctrl-C or SIGTERM: (pid " in message


@pytest.fixture
def slurm_run(hosts_run, tmp_path, monkeypatch):
    """A run on Slurm with two jobs; `squeue` and `scancel` are scripts that know of them."""
    record = load_engine(hosts_run)
    dataclasses.replace(record, engine="slurm").save(hosts_run)
    programs, jobs = tmp_path / "bin", tmp_path / "jobs"
    jobs.write_text("7|7|N/A|vantage-c0ffee-learner|RUNNING|h1|None\n")
    programs.mkdir()
    for name, body in {
        "squeue": f"cat {jobs}",
        # The learner's host ends when it has seen the stop file.
        "scancel": f'echo "$@" > {tmp_path}/canceled; [ -e {tmp_path}/stuck ] || : > {jobs}',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return hosts_run


def test_jobs_that_wait_are_canceled_and_the_others_drain(slurm_run, tmp_path, capsys, refuse):
    assert cli.run(["stop", str(slurm_run.root), "--timeout", "5"]) == 0
    assert capsys.readouterr().out == f"{slurm_run.root}: stopped\n"
    assert slurm_run.stop_file.exists()
    assert (tmp_path / "canceled").read_text() == "--quiet --state=PENDING 7\n"
    assert "has no jobs in the queue; nothing to stop" in refuse("stop", str(slurm_run.root))


def test_jobs_that_do_not_end_in_time_are_named_with_the_way_out(slurm_run, tmp_path, refuse):
    (tmp_path / "stuck").touch()
    message = refuse("stop", str(slurm_run.root), "--timeout", "0")
    assert "is still stopping after 0 s" in message
    assert "give up its last checkpoint with: scancel 7" in message
