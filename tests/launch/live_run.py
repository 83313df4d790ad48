"""A real run in real processes, for faults to happen to."""

import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil
import reverb

from launch.invocation import vantage_command
from launch.run_dir import RunDir
from launch.supervise.node_process import die_with_parent
from report.metrics_file import read_rows
from reverb_server.client import SERVER_AWAY, TableCounts, read_counts

ROOT = pathlib.Path(__file__).parents[2]
N_STEP = 5
TARGET_RATIO = 8.0
FLAGS = (
    "--network=tiny",
    "--frames=1000000000",
    "--warmup-steps=200",
    "--replay-capacity-steps=5000",
    "--publish-period-updates=20",
    "--eval-period-frames=1000000000",
    "--eval-episodes=1",
    "--max-episode-frames=400",
    "--report-seconds=0.5",
    "--envs-per-actor=2",
    f"--n-step={N_STEP}",
    f"--samples-per-insert={TARGET_RATIO:g}",
    "--checkpoint-seconds=3",
    "--replay-checkpoint-seconds=5",
)


class NotRecoveredError(Exception):
    """The run did not go on within its time."""


class LiveRun:
    """`vantage train` in a folder; may be killed and resumed."""

    def __init__(
        self, folder: pathlib.Path, *flags: str, environment: Mapping[str, str] | None = None
    ):
        self.run_dir = RunDir(folder)
        self._environment = {**os.environ, **(environment or {})}
        self._start(*FLAGS, *flags)

    def _start(self, *flags: str) -> None:
        self._output = (self.run_dir.root.parent / "output.log").open("ab")
        self.process = subprocess.Popen(
            vantage_command("train", f"--run-dir={self.run_dir.root}", *flags),
            cwd=ROOT,
            env=self._environment,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            # Nothing is left behind when the test itself is killed.
            preexec_fn=die_with_parent(os.getpid()),
        )

    def __enter__(self) -> "LiveRun":
        return self

    def __exit__(self, *problem: object) -> None:
        """Nothing of it is left."""
        if self.process.poll() is None:
            self.kill()

    def resume(self) -> None:
        """Starts it again where it was."""
        self._start("--resume")

    def kill(self) -> None:
        """kill -9 of the supervisor; returns when nothing of the run is alive."""
        family = [psutil.Process(self.process.pid)]
        family += family[0].children(recursive=True)
        self.process.kill()
        self.process.wait(30)
        self._output.close()
        _, alive = psutil.wait_procs(family, timeout=30)
        assert not alive, alive

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Nodes by name, as the supervisor last wrote them."""
        try:
            stored = json.loads(self.run_dir.status_file.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        if stored["pid"] != self.process.pid:
            return {}
        return {f"{node['role']}-{node['index']}": node for node in stored["nodes"]}

    def all_running(self) -> bool:
        """Whether the supervisor says so of every node."""
        nodes = self.nodes()
        return bool(nodes) and all(node["state"] == "running" for node in nodes.values())

    def restarts(self) -> int:
        """How many nodes had to be started again."""
        return sum(node["restarts"] for node in self.nodes().values())

    def rows(self, role: str) -> list[dict[str, Any]]:
        """Metrics of a role so far."""
        if not self.run_dir.metrics_file.exists():
            return []
        return [row for row in read_rows(self.run_dir.metrics_file) if row["role"] == role]

    @property
    def address(self) -> str:
        """Where the server is."""
        return self.run_dir.address_file.read_text().strip()

    def counts(self) -> TableCounts | None:
        """Inserts, samples and size, or None while the server does not answer."""
        try:
            return read_counts(reverb.Client(self.address), timeout_seconds=2)
        except (*SERVER_AWAY, FileNotFoundError):
            return None

    def newest_checkpoint(self) -> int:
        """Updates of the learner's newest checkpoint; 0 without one."""
        names = sorted(p.stem for p in self.run_dir.checkpoints.glob("checkpoint-*.npz"))
        return int(names[-1].rpartition("-")[2]) if names else 0

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to a node."""
        os.kill(self.nodes()[name]["pid"], number)

    def wait(self, what: str, condition: Callable[[], Any], seconds: float) -> Any:
        """Asks until the answer is true; the supervisor must be alive meanwhile."""
        deadline = time.monotonic() + seconds
        while not (answer := condition()):
            if self.process.poll() is not None:
                raise NotRecoveredError(f"{what}: the run ended with {self.process.returncode}")
            if time.monotonic() > deadline:
                raise NotRecoveredError(f"{what}: not within {seconds:.0f} s")
            time.sleep(0.1)
        return answer

    def wait_started(self, seconds: float) -> None:
        """Waits until every node is up and training goes on, at most this long for each."""
        self.wait("the run starts", self.all_running, seconds)
        self.wait_progress(seconds)

    def wait_progress(self, seconds: float) -> TableCounts:
        """Waits until actors insert and the learner samples; returns the first counts seen."""
        first = self.wait("the server answers", self.counts, seconds)

        def both_grow() -> bool:
            now = self.counts()
            return (
                now is not None and now.inserts > first.inserts and now.samples > first.samples + 64
            )

        self.wait("actors insert and the learner samples", both_grow, seconds)
        return first
