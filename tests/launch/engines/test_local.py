"""Real runs in real processes: watched, disturbed, stopped, resumed, killed."""

import os
import signal
import socket
import subprocess

import psutil
import pytest

from launch.invocation import vantage_command
from tests.launch.listening import listeners, listening_ports
from tests.launch.live_run import ROOT, WAIT_SECONDS, LiveRun
from tests.launch.tiny_run import TINY_FLAGS

GONE_SECONDS = 15.0  # the promise: nothing of a killed or interrupted run is alive after this
# Long enough to be interrupted; every run here is stopped by the test.
ENDLESS = ("--frames=100000000",)
FOUR = ("--updates-per-dispatch=4",)  # as runs have it by default


def test_a_run_is_watched_disturbed_stopped_and_resumed_to_its_end(tmp_path):
    folder = tmp_path / "run"
    with LiveRun(folder, *TINY_FLAGS, *ENDLESS, *FOUR, asked_from_outside=False) as run:
        run.wait_for_updates(20)
        family = run.family()
        # The launcher, the fork server, replay, the learner, two actors, evaluator, monitor.
        assert len(family) == 8

        only_reverb_listens(run, family)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert run.run_dir.address_file.stat().st_mode & 0o777 == 0o600

        status = run.status()
        assert status["state"] == "running" and status["updates"] > 0 and status["frames"] > 0
        assert {node["state"] for node in status["nodes"]} == {"running"}

        before = run.highest("updates")
        killed = ("actor-1", "evaluator-0", "monitor-0")
        for name in killed:
            run.signal(name, signal.SIGKILL)
        run.wait(
            "they are back",
            lambda: all(
                run.nodes()[name]["restarts"] == 1 and run.nodes()[name]["state"] == "running"
                for name in killed
            ),
        )
        run.wait_for_updates(before)
        assert run.nodes()["learner-0"]["restarts"] == 0

        command = vantage_command("stop", str(folder))
        stop = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert (stop.returncode, stop.stderr) == (0, "")
        assert run.process.wait(GONE_SECONDS) == 0
        assert psutil.wait_procs(family, timeout=GONE_SECONDS)[1] == []
        assert list(run.run_dir.checkpoints.glob("checkpoint-*.npz"))
        assert any(run.run_dir.replay.iterdir())
        stopped_at = run.rows("learner")[-1]

        end = stopped_at["frames"] + 4000
        run.resume(f"--frames={end}")
        assert run.end() == 0, run.output
    assert f"finished; see {folder}" in run.output.splitlines()
    assert "killed" not in run.output.rpartition("stopping")[2]
    rows = [row for row in run.rows("learner") if row["time"] > stopped_at["time"]]
    assert rows[0]["updates"] >= stopped_at["updates"]
    assert rows[0]["frames"] >= stopped_at["frames"]
    assert end <= rows[-1]["frames"] <= 1.01 * end
    assert rows[-1]["samples_per_insert"] == pytest.approx(2.0, rel=0.2)
    [last] = [row for row in run.rows("evaluator") if row["frames"] >= end]
    assert last["eval_episodes"] == 1
    replay = run.rows("replay")[-1]
    assert replay["size"] > 0 and replay["bytes"] > 0
    assert run.output.splitlines().count("training") >= 2
    scores, learner, replay_log = (
        run.run_dir.log_file(role, 0).read_text() for role in ("evaluator", "learner", "replay")
    )
    assert f"evaluation at {last['frames']:,} frames:" in scores
    assert "libtpu" not in learner and "read so far" not in replay_log


def test_nothing_of_a_run_outlives_its_launcher(tmp_path):
    with LiveRun(tmp_path / "run", *TINY_FLAGS, *ENDLESS) as run:
        run.wait("all are up", run.all_running)
        family = run.family()
        assert run.end(signal.SIGKILL) == -signal.SIGKILL
        assert psutil.wait_procs(family, timeout=GONE_SECONDS)[1] == []
        assert run.status()["state"] == "dead"


def test_replay_in_the_learners_process_trains_to_the_end_too(tmp_path):
    flags = ("--colocate", "--updates-per-dispatch=2", "--algorithm=q", "--prioritized")
    with LiveRun(tmp_path / "run", *TINY_FLAGS, *flags, "--actors=1") as run:
        assert run.end() == 0, run.output
    assert set(run.nodes()) == {"learner-0", "actor-0", "evaluator-0", "monitor-0"}
    assert run.highest("updates") % 2 == 0 and run.highest("updates") > 0
    assert 6000 <= run.rows("evaluator")[-1]["frames"] <= 6060
    assert list(run.run_dir.replay.iterdir())


def test_a_run_whose_learning_diverges_fails_once_and_says_why(tmp_path):
    # Without reports and checkpoints it is what would be published that shows it.
    quiet = ("--actors=1", "--report-seconds=10000", "--checkpoint-seconds=10000")
    diverging = ("--learning-rate=1e38", "--prioritized")
    with LiveRun(tmp_path / "run", *TINY_FLAGS, *ENDLESS, *quiet, *diverging) as run:
        assert run.end() == 1, run.output
    [words] = [line for line in run.output.splitlines() if "learner-0" in line]
    assert words.startswith(
        "learner-0 gave up: learning diverged: values are NaN or infinite after"
    )
    assert "those of update 0 were finite" in words and "--learning-rate below 1e+38" in words
    assert "the run failed for good" in run.output and "--resume" not in run.output
    assert run.nodes()["learner-0"]["restarts"] == 0
    assert run.status()["state"] == "failed for good"
    assert not list(run.run_dir.checkpoints.glob("*"))


def only_reverb_listens(run: LiveRun, family: list[psutil.Process]) -> None:
    """The one listening port of the whole run is replay's; nobody outside of the run reaches it."""
    replay = run.nodes()["replay-0"]["pid"]
    port = int(run.run_dir.address_file.read_text().rpartition(":")[2])
    seen_here = listeners(family)
    if os.readlink(f"/proc/{replay}/ns/net") == os.readlink("/proc/self/ns/net"):
        assert seen_here == {(replay, port)}  # no namespaces on this machine
        return
    assert seen_here == set()
    assert listening_ports(replay) == {port}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("localhost", port), WAIT_SECONDS)
