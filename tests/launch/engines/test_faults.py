"""Faults to real runs: a device that hangs, a disk that is full, a folder that is deleted."""

import shutil
import signal

import psutil

from tests.launch.engines import faulty_loss
from tests.launch.live_run import LiveRun

WAIT_SECONDS = 400.0  # bounds a hang; a run needs some seconds, more on a loaded machine
STUCK_SECONDS = 20.0


def trains(run: LiveRun) -> bool:
    """Whether the learner has made an update since it was last started."""
    said = run.nodes().get("learner-0", {}).get("progress")
    return said is not None and said.startswith("update")


def end(run: LiveRun) -> str:
    """What the run said until it ended, with code 1."""
    assert run.process.wait(WAIT_SECONDS) == 1
    return (run.run_dir.root.parent / "output.log").read_text()


def test_a_learner_that_hangs_is_restarted_alone_and_a_full_disk_is_no_orderly_stop(tmp_path):
    hang = tmp_path / "hang"
    with LiveRun(
        tmp_path / "run",
        faulty_loss.FLAG,
        f"--stuck-seconds={STUCK_SECONDS:g}",
        environment={faulty_loss.VARIABLE: str(hang)},
    ) as run:
        run.wait("it trains", lambda: trains(run), WAIT_SECONDS)
        hang.touch()
        run.wait(
            "the learner is found stuck",
            lambda: run.nodes()["learner-0"]["restarts"] == 1,
            WAIT_SECONDS,
        )
        hang.unlink()
        run.wait("it trains again", lambda: trains(run), WAIT_SECONDS)
        assert run.restarts() == 1, run.nodes()
        assert "_hang" in run.run_dir.log_file("learner", 0).read_text()

        learner = psutil.Process(run.nodes()["learner-0"]["pid"])
        learner.rlimit(psutil.RLIMIT_FSIZE, (0, 0))  # it can write no byte to any file
        run.process.send_signal(signal.SIGINT)
        said = end(run)
    assert "learner-0 made no progress for" in said and "(last: update " in said
    assert "vantage: error: stopped, but the last checkpoint was not written" in said
    assert run.run_dir.status_file.exists()


def test_a_run_whose_folder_is_deleted_says_so_and_does_not_make_it_anew(tmp_path):
    with LiveRun(tmp_path / "run") as run:
        run.wait_started(WAIT_SECONDS)
        while run.run_dir.root.exists():  # nodes may add a file meanwhile
            shutil.rmtree(run.run_dir.root, ignore_errors=True)
        said = end(run)
    assert "is gone: the run cannot be saved" in said
    assert "was deleted or moved while the run was alive" in said.splitlines()[-1]
    assert not run.run_dir.root.exists()
