"""Faults to real runs: a device that hangs, a disk that is full, a folder that is deleted."""

import shutil
import signal

import psutil

from tests.launch.engines import faulty_loss
from tests.launch.live_run import LiveRun
from tests.launch.tiny_run import TINY_FLAGS

FLAGS = (*TINY_FLAGS, "--frames=100000000", "--actors=1")
STUCK_SECONDS = 20.0


def test_a_learner_that_hangs_is_restarted_alone_and_a_full_disk_is_no_orderly_stop(tmp_path):
    fault = tmp_path / "fault"
    with LiveRun(
        tmp_path / "run",
        *FLAGS,
        faulty_loss.FLAG,
        f"--stuck-seconds={STUCK_SECONDS:g}",
        environment={faulty_loss.VARIABLE: str(fault)},
    ) as run:
        run.wait("it trains", run.trains)
        fault.write_text(faulty_loss.HANG)
        run.wait("the learner is found stuck", lambda: run.nodes()["learner-0"]["restarts"] == 1)
        fault.unlink()
        run.wait("it trains again", run.trains)
        assert run.restarts() == 1, run.nodes()
        assert "in _fault" in run.run_dir.log_file("learner", 0).read_text()

        learner = psutil.Process(run.nodes()["learner-0"]["pid"])
        learner.rlimit(psutil.RLIMIT_FSIZE, (0, 0))  # it can write no byte to any file
        assert run.end(signal.SIGINT) == 1
    assert "learner-0 made no progress for" in run.output and "(last: update " in run.output
    assert "vantage: error: stopped, but the last checkpoint was not written" in run.output
    assert run.run_dir.status_file.exists()


def test_a_run_whose_folder_is_deleted_says_so_and_does_not_make_it_anew(tmp_path):
    with LiveRun(tmp_path / "run", *FLAGS) as run:
        run.wait_started()
        while run.run_dir.root.exists():  # nodes may add a file meanwhile
            shutil.rmtree(run.run_dir.root, ignore_errors=True)
        assert run.end() == 1
    assert "is gone: the run cannot be saved" in run.output
    assert "was deleted or moved while the run was alive" in run.output.splitlines()[-1]
    assert not run.run_dir.root.exists()
