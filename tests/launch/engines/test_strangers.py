"""A real run on a port left open, and a stranger who sends it what is none of its own."""

import signal
import subprocess
import sys

import psutil
import pytest

from tests.launch.engines import slow_loss
from tests.launch.live_run import ROOT, LiveRun
from tests.launch.tiny_run import TINY_FLAGS

GONE_SECONDS = 15.0
FRAMES = 10_000_000  # more than it makes before it is stopped
FLAGS = (
    *TINY_FLAGS,
    f"--frames={FRAMES}",
    "--actors=1",
    slow_loss.FLAG,
    "--warmup-steps=500",
)


@pytest.mark.parametrize("how", ["uniform", "prioritized"])
def test_a_run_goes_on_whatever_strangers_send_and_leaves_nothing_when_interrupted(tmp_path, how):
    prioritized = how == "prioritized"
    with LiveRun(tmp_path / "run", *FLAGS, *(["--prioritized"] if prioritized else [])) as run:
        run.wait_for_updates(0)
        program = [sys.executable, "-m", "tests.launch.engines.stranger"]
        stranger = subprocess.Popen([*program, run.address, str(FRAMES // 4)], cwd=ROOT)
        run.wait("the stranger is done", lambda: stranger.poll() is not None)
        assert stranger.returncode == 0
        run.wait("its items are found", lambda: run.highest("rejected_items") > 0)
        # Where replay is emptied because of it, the count of its samples may begin anew after them.
        if not prioritized:
            run.wait("its samples are found", lambda: run.highest("foreign_samples") > 0)
        run.wait_for_updates(run.highest("updates") + 50)
        assert run.all_running() and run.restarts() == 0, run.nodes()
        family = run.family()
        assert run.end(signal.SIGINT) == 130, run.output
        assert psutil.wait_procs(family, timeout=GONE_SECONDS)[1] == []
        assert run.status()["state"] == "stopped"
        log = run.run_dir.log_file("learner", 0).read_text()
        assert "saver: wrote a checkpoint" in log
        assert ("emptying it" in log) == prioritized
    assert all(0 <= row["frames"] <= FRAMES for row in run.rows())
