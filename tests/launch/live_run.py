"""A real run in real processes: started, watched, disturbed, killed, resumed."""

import contextlib
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
from launch.nodes.tables import item_layout
from launch.run_dir import RunDir
from launch.supervise.node_process import die_with_parent
from report.metrics_file import read_rows
from reverb_server.client import SERVER_AWAY, TableCounts, read_counts

ROOT = pathlib.Path(__file__).parents[2]
WAIT_SECONDS = 400.0  # bounds a hang; a run needs some seconds, more on a loaded machine
_GONE_SECONDS = 30.0


class NotRecoveredError(Exception):
    """The run did not go on within its time."""


class LiveRun:
    """`vantage train` in a folder; may be killed and resumed. Use as a context manager."""

    def __init__(
        self,
        folder: pathlib.Path,
        *flags: str,
        environment: Mapping[str, str] | None = None,
        asked_from_outside: bool = True,
    ):
        """A server that is `asked_from_outside` of the run is not isolated, as it would be."""
        self.run_dir = RunDir(folder)
        self._environment = {**os.environ, **(environment or {})}
        self._port_flags = ("--no-isolate",) if asked_from_outside else ()
        self._start(*flags)

    def __enter__(self) -> "LiveRun":
        return self

    def __exit__(self, *problem: object) -> None:
        """Nothing of it is left."""
        if self.process.poll() is None:
            self.kill()

    def _start(self, *flags: str) -> None:
        run = ("train", f"--run-dir={self.run_dir.root}")
        self.process = self.spawn(*run, *self._port_flags, *flags)

    def spawn(self, *args: str) -> subprocess.Popen[bytes]:
        """A command of ours, whose words are added to `output`."""
        with self._output_file.open("ab") as output:
            return subprocess.Popen(
                vantage_command(*args),
                cwd=ROOT,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Nothing is left behind when the test itself is killed.
                preexec_fn=die_with_parent(os.getpid()),
            )

    def resume(self, *flags: str) -> None:
        """Starts it again where it was."""
        self._start("--resume", *flags)

    def kill(self) -> None:
        """kill -9 of the supervisor; returns when nothing of the run is alive."""
        family = self.family()
        self.process.kill()
        self.process.wait(_GONE_SECONDS)
        _, alive = psutil.wait_procs(family, timeout=_GONE_SECONDS)
        assert not alive, alive

    def end(self, number: signal.Signals | None = None) -> int:
        """The exit code, once it has ended: by itself, or of a signal."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(WAIT_SECONDS)

    @property
    def _output_file(self) -> pathlib.Path:
        return self.run_dir.root.with_name(f"{self.run_dir.root.name}-output.log")

    @property
    def output(self) -> str:
        """All that it has said, over its resumptions."""
        return self._output_file.read_text()

    def family(self) -> list[psutil.Process]:
        """The supervisor and all its children."""
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

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
        """Whether the supervisor says so of every node, and which process it is."""
        up = [
            node["state"] == "running" and node["pid"] is not None for node in self.nodes().values()
        ]
        return bool(up) and all(up)

    def restarts(self) -> int:
        """How many nodes had to be started again."""
        return sum(node["restarts"] for node in self.nodes().values())

    def trains(self) -> bool:
        """Whether the learner has made an update since it was last started."""
        said = self.nodes().get("learner-0", {}).get("progress")
        return said is not None and said.startswith("update")

    def status(self) -> dict[str, Any]:
        """What `vantage status` says."""
        command = vantage_command("status", str(self.run_dir.root), "--json")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def rows(self, role: str | None = None) -> list[dict[str, Any]]:
        """Metrics so far, of a role or of all."""
        if not self.run_dir.metrics_file.exists():
            return []
        return [r for r in read_rows(self.run_dir.metrics_file) if role in (None, r["role"])]

    def highest(self, key: str) -> float:
        """The largest number under a name in the learner's metrics; 0 without one."""
        values = (row.get(key) for row in self.rows("learner"))
        return max((value for value in values if value is not None), default=0)

    @property
    def address(self) -> str:
        """Where the server is."""
        return self.run_dir.address_file.read_text().strip()

    def counts(self) -> TableCounts | None:
        """Inserts, samples and size, or None while the server does not answer."""
        with contextlib.suppress(FileNotFoundError):
            return self.counts_at(self.address)
        return None

    def counts_at(self, address: str) -> TableCounts | None:
        """The same, of a server at an address."""
        with contextlib.suppress(*SERVER_AWAY, FileNotFoundError):
            layout = item_layout(self.run_dir.load_config())
            return read_counts(reverb.Client(address), layout, timeout_seconds=2)
        return None

    def newest_checkpoint(self) -> int:
        """Updates of the learner's newest checkpoint; 0 without one."""
        names = sorted(p.stem for p in self.run_dir.checkpoints.glob("checkpoint-*.npz"))
        return int(names[-1].rpartition("-")[2]) if names else 0

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to a node."""
        os.kill(self.nodes()[name]["pid"], number)

    def wait(self, what: str, condition: Callable[[], Any], seconds: float = WAIT_SECONDS) -> Any:
        """Asks until the answer is true; the supervisor must be alive meanwhile."""
        deadline = time.monotonic() + seconds
        while not (answer := condition()):
            if self.process.poll() is not None:
                last = (self.output.splitlines() or [""])[-1]
                raise NotRecoveredError(
                    f"{what}: the run ended with {self.process.returncode}: {last}"
                )
            if time.monotonic() > deadline:
                raise NotRecoveredError(f"{what}: not within {seconds:.0f} s")
            time.sleep(0.1)
        return answer

    def wait_started(self, seconds: float = WAIT_SECONDS) -> None:
        """Waits until every node is up and training goes on, at most this long for each."""
        self.wait("the run starts", self.all_running, seconds)
        self.wait_progress(seconds)

    def wait_for_updates(self, more_than: float) -> None:
        """Waits until the metrics know of more updates than these."""
        self.wait(f"{more_than} updates", lambda: self.highest("updates") > more_than)

    def wait_progress(self, seconds: float = WAIT_SECONDS) -> TableCounts:
        """Waits until actors insert and the learner samples; returns the first counts seen."""
        first = self.wait("the server answers", self.counts, seconds)

        def both_grow() -> bool:
            now = self.counts()
            return (
                now is not None and now.inserts > first.inserts and now.samples > first.samples + 64
            )

        self.wait("actors insert and the learner samples", both_grow, seconds)
        return first
