"""One run of a suite on this machine: what is there of it, its process, and how it ended."""

import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Sequence

from launch.config import Config
from launch.errors import ExitCode
from launch.monitor.follow import TAIL_BYTES, MetricsFollower, recent_rows
from launch.run_dir import RunDir
from launch.suite.core_shares import Share
from launch.suite.plan import PlannedRun, train_command
from launch.supervise.log_file import last_line
from launch.supervise.node_process import die_with_parent
from launch.supervise.status_file import read_status
from report.metrics_file import Row


class SuiteRun:
    """A planned run, and its process while there is one."""

    def __init__(self, planned: PlannedRun, log_file: pathlib.Path):
        self.planned, self.log_file = planned, log_file
        self.frames = 0
        self.problem = ""
        self.cores: Share = frozenset()
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._follower: MetricsFollower | None = None
        self._add(_tail(planned.run_dir))
        self.frames_before = self.frames
        status = read_status(planned.run_dir)
        if is_finished(planned.run_dir, planned.config):
            self.state = "done"
        elif status is not None and status.alive:
            self.state = "elsewhere"
            self.problem = f"already running on {status.host} (pid {status.pid})"
        else:
            self.state = "waiting"

    @property
    def fraction(self) -> float:
        """How much of its frames is done."""
        if self.state == "done":
            return 1.0
        return min(self.frames / self.planned.config.frames, 1.0)

    def start(self, cores: Share) -> None:
        """Computes on these cores; its output goes to its log, over all attempts."""
        keep_to_cores = functools.partial(os.sched_setaffinity, 0, cores)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                train_command(self.planned),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Its own session: Ctrl-C reaches the suite alone, which passes it on.
                start_new_session=True,
                preexec_fn=die_with_parent(os.getpid(), keep_to_cores),
            )
        self._follower = MetricsFollower(self.planned.run_dir.metrics_file, TAIL_BYTES)
        self._started_at = time.monotonic()
        self.cores = cores
        self.state = "running"

    def poll(self) -> bool:
        """Takes in what the run has written; True when it has just ended."""
        assert self._process is not None and self._follower is not None
        # A damaged line is for the report to tell; here it only delays a percentage.
        with contextlib.suppress(ValueError):
            self._add(self._follower.poll())
        code = self._process.poll()
        if code is None:
            return False
        self._conclude(code)
        return True

    def interrupt(self) -> None:
        """Once asks it to stop in order, twice kills it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._started_at

    def _conclude(self, code: int) -> None:
        if is_finished(self.planned.run_dir, self.planned.config):
            self.state = "done"
        elif code in (ExitCode.DONE, ExitCode.INTERRUPTED, ExitCode.COME_BACK):
            # Stopped by someone.
            self.state = "unfinished"
        else:
            self.state = "failed"
            self.problem = f"exit code {code}: {last_line(self.log_file)}"

    def _add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if row.get("role") == "learner":
                self.frames = int(row["frames"])


def is_finished(run_dir: RunDir, config: Config) -> bool:
    """Whether the final parameters have been scored, which is the last thing a run does."""
    end = config.frames_of(config.total_steps)
    return any(
        row.get("role") == "evaluator" and row.get("frames", 0) >= end for row in _tail(run_dir)
    )


def _tail(run_dir: RunDir) -> list[Row]:
    # Whatever is damaged in it is for the report to tell.
    return recent_rows(run_dir.metrics_file, on_malformed=lambda error: None)
