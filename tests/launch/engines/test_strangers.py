"""A real run on an open port, and a stranger who sends it everything that is none of its own."""

import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from launch.invocation import vantage_command
from launch.run_dir import RunDir
from report.metrics_file import read_rows
from tests.launch.tiny_run import TINY_FLAGS

ROOT = pathlib.Path(__file__).parents[3]
WAIT_SECONDS = 400.0  # bounds a hang
FRAMES = 10_000_000  # more than it makes before it is stopped
FLAGS = (*TINY_FLAGS, f"--frames={FRAMES}", "--updates-per-dispatch=1", "--warmup-steps=500")


class Run:
    """`vantage train`, and what it writes."""

    def __init__(self, folder: pathlib.Path):
        self.run_dir = RunDir(folder)
        self.process = subprocess.Popen(
            vantage_command("train", f"--run-dir={folder}", *FLAGS),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def rows(self) -> list[dict]:
        path = self.run_dir.metrics_file
        return list(read_rows(path)) if path.exists() else []

    def highest(self, key: str) -> float:
        return max((row[key] for row in self.rows() if row.get(key) is not None), default=0)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert self.process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)

    def restarts(self) -> int:
        stored = json.loads(self.run_dir.status_file.read_text())
        return sum(node["restarts"] for node in stored["nodes"])


def test_a_run_goes_on_whatever_strangers_send(tmp_path):
    run = Run(tmp_path / "run")
    try:
        run.wait_for(lambda: run.highest("updates") > 0)
        address = run.run_dir.read_address()
        stranger = subprocess.Popen(
            [sys.executable, "-m", "tests.launch.engines.stranger", address], cwd=ROOT
        )
        run.wait_for(lambda: stranger.poll() is not None)
        assert stranger.returncode == 0
        run.wait_for(lambda: run.highest("rejected_items") > 0)
        run.wait_for(lambda: run.highest("foreign_samples") > 0)
        before = run.highest("updates")
        run.wait_for(lambda: run.highest("updates") > before + 50)
        assert run.restarts() == 0
        run.process.send_signal(signal.SIGINT)
        output, _ = run.process.communicate(timeout=WAIT_SECONDS)
    finally:
        run.process.kill()
    assert run.process.returncode == 130, output
    assert all(0 <= row["frames"] <= FRAMES for row in run.rows())
