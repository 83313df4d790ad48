"""Real runs in real processes: watched, disturbed, stopped, resumed, killed."""

import json
import pathlib
import signal
import subprocess
import time

import psutil
import pytest

from launch.invocation import vantage_command
from launch.run_dir import RunDir
from report.metrics_file import read_rows
from tests.launch.tiny_run import TINY_FLAGS

WAIT_SECONDS = 400.0  # bounds a hang; a run needs some seconds, more on a loaded machine
GONE_SECONDS = 15.0  # the promise: nothing of a killed or interrupted run is alive after this
ROOT = pathlib.Path(__file__).parents[3]
# Long enough to be interrupted; every run here is stopped by the test.
ENDLESS = ("--frames=100000000",)


class Run:
    """`vantage train` in a process of its own."""

    def __init__(self, folder: pathlib.Path, *flags: str):
        self.run_dir = RunDir(folder)
        self.process = subprocess.Popen(
            vantage_command("train", f"--run-dir={folder}", *flags),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def status(self) -> dict:
        command = vantage_command("status", str(self.run_dir.root), "--json")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def nodes(self) -> dict[str, dict]:
        """Nodes by name, as the supervisor last wrote them."""
        if not self.run_dir.status_file.exists():
            return {}
        stored = json.loads(self.run_dir.status_file.read_text())
        return {f"{node['role']}-{node['index']}": node for node in stored["nodes"]}

    def rows(self, role: str) -> list[dict]:
        if not self.run_dir.metrics_file.exists():
            return []
        return [row for row in read_rows(self.run_dir.metrics_file) if row["role"] == role]

    def updates(self) -> int:
        rows = self.rows("learner")
        return rows[-1]["updates"] if rows else 0

    def wait_for_updates(self, more_than: int) -> None:
        self.wait_for(lambda: self.updates() > more_than)

    def wait_for(self, condition) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(p.read_text() for p in (self.run_dir.root / "logs").iterdir())

    def family(self) -> list[psutil.Process]:
        launcher = psutil.Process(self.process.pid)
        return [launcher, *launcher.children(recursive=True)]

    def end(self, number: signal.Signals, timeout: float = WAIT_SECONDS) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=timeout)
        return self.process.returncode


@pytest.fixture
def start():
    """Starts runs, and leaves none behind whatever the test did."""
    started: list[Run] = []

    def start_run(*args: object) -> Run:
        run = Run(*args)
        started.append(run)
        return run

    yield start_run
    for run in started:
        run.process.kill()
        run.process.wait(WAIT_SECONDS)


def test_a_run_is_watched_disturbed_stopped_and_resumed_to_its_end(tmp_path, start):
    folder = tmp_path / "run"
    run = start(folder, *TINY_FLAGS, *ENDLESS)
    run.wait_for_updates(20)
    family = run.family()
    assert len(family) == 7  # the launcher, replay, learner, two actors, evaluator, monitor

    only_reverb_listens(run, family)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert run.run_dir.address_file.stat().st_mode & 0o777 == 0o600

    status = run.status()
    assert status["state"] == "running" and status["updates"] > 0 and status["frames"] > 0
    assert {node["state"] for node in status["nodes"]} == {"running"}

    before = run.updates()
    for name in ("actor-1", "evaluator-0", "monitor-0"):
        psutil.Process(run.nodes()[name]["pid"]).kill()
    run.wait_for(
        lambda: all(
            run.nodes()[name]["restarts"] == 1 and run.nodes()[name]["state"] == "running"
            for name in ("actor-1", "evaluator-0", "monitor-0")
        )
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
    resumed = start(folder, "--resume", f"--frames={end}")
    output = resumed.process.communicate(timeout=WAIT_SECONDS)[0]
    assert resumed.process.returncode == 0, output
    assert "finished" in output
    rows = [row for row in resumed.rows("learner") if row["time"] > stopped_at["time"]]
    assert rows[0]["updates"] >= stopped_at["updates"]
    assert rows[0]["frames"] >= stopped_at["frames"]
    assert rows[-1]["frames"] >= end
    assert rows[-1]["samples_per_insert"] == pytest.approx(8.0, rel=0.2)
    [last] = [row for row in resumed.rows("evaluator") if row["frames"] >= end]
    assert last["eval_episodes"] == 1
    replay = resumed.rows("replay")[-1]
    assert replay["size"] > 0 and replay["bytes"] > 0


@pytest.mark.parametrize(
    ("number", "code", "state"),
    [(signal.SIGKILL, -signal.SIGKILL, "dead"), (signal.SIGINT, 130, "stopped")],
)
def test_nothing_of_a_run_outlives_its_launcher(tmp_path, start, number, code, state):
    run = start(tmp_path / "run", *TINY_FLAGS, *ENDLESS)
    run.wait_for(lambda: all(node["pid"] for node in run.nodes().values()) and run.nodes())
    family = run.family()
    assert run.end(number) == code
    assert psutil.wait_procs(family, timeout=GONE_SECONDS)[1] == []
    assert run.status()["state"] == state


def test_replay_in_the_learners_process_trains_to_the_end_too(tmp_path, start):
    flags = ("--colocate", "--updates-per-dispatch=2", "--algorithm=q", "--prioritized")
    run = start(tmp_path / "run", *TINY_FLAGS, *flags, "--actors=1")
    output, _ = run.process.communicate(timeout=WAIT_SECONDS)
    assert run.process.returncode == 0, output + run.logs()
    assert set(run.nodes()) == {"learner-0", "actor-0", "evaluator-0", "monitor-0"}
    assert run.updates() % 2 == 0 and run.updates() > 0
    assert run.rows("evaluator")[-1]["frames"] >= 6000
    assert list(run.run_dir.replay.iterdir())


def test_a_run_whose_learning_diverges_fails_once_and_says_why(tmp_path, start):
    # Without reports and checkpoints it is what would be published that shows it.
    quiet = ("--report-seconds=10000", "--checkpoint-seconds=10000")
    diverging = ("--learning-rate=1e25", "--prioritized")
    run = start(tmp_path / "run", *TINY_FLAGS, *ENDLESS, *quiet, *diverging)
    output, _ = run.process.communicate(timeout=WAIT_SECONDS)
    assert run.process.returncode == 1, output
    [words] = [line for line in output.splitlines() if "learner-0" in line]
    assert words.startswith(
        "learner-0 gave up: learning diverged: values are NaN or infinite after"
    )
    assert "those of update 0 were finite" in words and "--learning-rate below 1e+25" in words
    assert "the run failed for good" in output and "--resume" not in output
    assert {name: node["restarts"] for name, node in run.nodes().items()}["learner-0"] == 0
    assert run.status()["state"] == "failed for good"
    assert not list(run.run_dir.checkpoints.glob("*"))


def only_reverb_listens(run: Run, family: list[psutil.Process]) -> None:
    """The one listening port of the whole run is the one in its address file, held by replay."""
    listening = {
        (process.pid, connection.laddr.port)
        for process in family
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    port = int(run.run_dir.address_file.read_text().rpartition(":")[2])
    assert listening == {(run.nodes()["replay-0"]["pid"], port)}
