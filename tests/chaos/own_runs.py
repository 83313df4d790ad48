"""Faults that take a run of their own: its disk, its clock, its learning, its ownership."""

import contextlib
import functools
import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from launch.engines.options import ACTOR_GROUPS, LEARNER_GROUPS
from launch.gate.keys import actor_key
from launch.gate.tunnel import OpenTunnel
from launch.invocation import vantage_command
from reverb_server.checkpoint import is_whole
from reverb_server.client import TableCounts
from tests.chaos.round import Round, judged
from tests.chaos.setting import FLAGS, RECOVERY_SECONDS
from tests.launch.engines import faulty_loss
from tests.launch.live_run import ROOT, LiveRun, NotRecoveredError

_DISK_BYTES = "256m"  # replay checkpoints alone take some 40
_FULL_SECONDS = 12.0
FULL_DISK = f"disk full for {_FULL_SECONDS:.0f} s or more"
_CLOCK_HOURS = (25, -25)
_STUCK_SECONDS = 20
STUCK = f"learner stuck (--stuck-seconds {_STUCK_SECONDS})"
DIVERGED = "loss diverges (ends with code 1)"
SECOND_HOST = "second learner host started"


def full_disk(folder: pathlib.Path) -> Round:
    """Metrics, logs and checkpoints on a file system that is full for a while.

    In a process of its own, whose mounts are nobody else's.
    """
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    command += [sys.executable, "-m", "tests.chaos.own_runs", str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return Round(FULL_DISK, None, problem=f"it ended with code {done.returncode}")
    return Round(*json.loads(done.stdout.splitlines()[-1]))


def _full_disk_here(folder: pathlib.Path) -> Round:
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES},mode=700", "tmpfs", str(folder)],
        check=True,
    )
    with LiveRun(folder / "run", *FLAGS) as run:
        run.wait_started(RECOVERY_SECONDS)
        run.wait("replay checkpoint", lambda: _whole_replay(run), RECOVERY_SECONDS)
        run.wait("metrics", lambda: run.rows("learner"), RECOVERY_SECONDS)
        ballast = _fill_disk(folder)
        time.sleep(_FULL_SECONDS)
        run.wait_progress(RECOVERY_SECONDS)
        seen, full_until, started = len(run.rows("learner")), time.time(), time.monotonic()
        ballast.unlink()
        run.wait("metrics again", lambda: len(run.rows("learner")) > seen, RECOVERY_SECONDS)
        run.wait("checkpoints again", lambda: _saved_since(run, full_until), RECOVERY_SECONDS)
        run.wait("all nodes run", run.all_running, RECOVERY_SECONDS)
        assert run.restarts() == 0, f"{run.restarts()} restarts"
        return Round(FULL_DISK, time.monotonic() - started)


def _whole_replay(run: LiveRun) -> list[pathlib.Path]:
    return [folder for folder in run.run_dir.replay.glob("*") if is_whole(folder)]


def _saved_since(run: LiveRun, when: float) -> bool:
    learner = [p.stat().st_mtime for p in run.run_dir.checkpoints.glob("checkpoint-*.npz")]
    replay = [folder.stat().st_mtime for folder in _whole_replay(run)]
    return max(learner, default=0) > when and max(replay, default=0) > when


def _fill_disk(folder: pathlib.Path) -> pathlib.Path:
    """Takes all space that is left in a folder's file system; returns the file that holds it."""
    ballast = folder / "ballast"
    # Without a buffer: closing it would have to write what did not fit.
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    return ballast


def clock_jumps(name: str, hours: int, folder: pathlib.Path) -> Round:
    """The wall clock as all our processes see it jumps; the machine's own is left alone.

    It is Python's clock that jumps. The clocks of gRPC and Reverb cannot be moved without moving
    the machine's.
    """
    jump_seconds = 3600.0 * hours
    offset = folder / "offset"
    offset.write_text("0")
    (folder / "sitecustomize.py").write_text(_JUMPING_CLOCK.format(str(offset)))
    with LiveRun(folder / "run", *FLAGS, environment={"PYTHONPATH": str(folder)}) as run:
        run.wait_started(RECOVERY_SECONDS)
        run.wait("metrics", lambda: run.rows("learner"), RECOVERY_SECONDS)
        seen, started = len(run.rows("learner")), time.monotonic()
        checkpoint = run.newest_checkpoint()
        offset.write_text(str(jump_seconds))
        run.wait("metrics go on", lambda: len(run.rows("learner")) > seen + 4, RECOVERY_SECONDS)
        run.wait("saves go on", lambda: run.newest_checkpoint() > checkpoint, RECOVERY_SECONDS)
        run.wait_progress(RECOVERY_SECONDS)
        seconds = time.monotonic() - started
        jumped = run.rows("learner")[-1]["time"] - time.time()
        assert abs(jumped - jump_seconds) < 3600, f"the clock was not seen to jump ({jumped})"
        assert run.restarts() == 0, f"{run.restarts()} restarts"
        return Round(name, seconds)


_JUMPING_CLOCK = """
import time
_now, _file = time.time, {!r}
def _jumping():
    try:
        return _now() + float(open(_file).read() or 0)
    except (OSError, ValueError):
        return _now()
time.time = _jumping
"""


def stuck_learner(folder: pathlib.Path) -> Round:
    """The update hangs on the device; the learner alone is restarted, and trains again."""
    fault = folder / "fault"
    with _faulty_run(folder, fault, f"--stuck-seconds={_STUCK_SECONDS}") as run:
        checkpoint = run.wait("a checkpoint", run.newest_checkpoint, RECOVERY_SECONDS)
        started = time.monotonic()
        fault.write_text(faulty_loss.HANG)
        run.wait(
            "it is found stuck", lambda: run.nodes()["learner-0"]["restarts"] == 1, RECOVERY_SECONDS
        )
        fault.unlink()
        run.wait("it trains again", run.trains, RECOVERY_SECONDS)
        run.wait_progress(RECOVERY_SECONDS)
        seconds = time.monotonic() - started
        assert run.restarts() == 1, f"others were restarted too: {run.nodes()}"
        assert "learner-0 made no progress for" in run.output, "it was not said"
        assert run.newest_checkpoint() >= checkpoint, "it went back before its last checkpoint"
        return Round(STUCK, seconds)


def diverged_loss(folder: pathlib.Path) -> Round:
    """Targets are NaN from some moment on: the run ends for good, and keeps what was good."""
    fault = folder / "fault"
    with _faulty_run(folder, fault) as run:
        checkpoint = run.wait("a checkpoint", run.newest_checkpoint, RECOVERY_SECONDS)
        started = time.monotonic()
        fault.write_text(faulty_loss.DIVERGE)
        try:
            code = run.process.wait(RECOVERY_SECONDS)
        except subprocess.TimeoutExpired:
            raise NotRecoveredError(f"not over within {RECOVERY_SECONDS:.0f} s") from None
        seconds = time.monotonic() - started
        assert code == 1, f"it ended with code {code}"
        assert run.restarts() == 0, f"{run.restarts()} restarts"
        assert "learner-0 gave up: learning diverged" in run.output, "it did not say why"
        assert run.newest_checkpoint() >= checkpoint, "the last good checkpoint is gone"
        _check_finite(run)
        return Round(DIVERGED, seconds)


def _check_finite(run: LiveRun) -> None:
    for path in run.run_dir.checkpoints.glob("checkpoint-*.npz"):
        with np.load(path) as stored:
            finite = all(np.isfinite(stored[name]).all() for name in stored)
        assert finite, f"{path.name} is not finite"


def _faulty_run(folder: pathlib.Path, fault: pathlib.Path, *flags: str) -> LiveRun:
    environment = {faulty_loss.VARIABLE: str(fault)}
    return LiveRun(folder / "run", *FLAGS, faulty_loss.FLAG, *flags, environment=environment)


class HostsRun(LiveRun):
    """A run of two hosts, both on this machine; `process` is the learner's."""

    def _start(self, *flags: str) -> None:
        hosts = ("--engine=hosts", "--actor-hosts=1", "--actors-per-host=2")
        train = self.spawn("train", f"--run-dir={self.run_dir.root}", *hosts, *flags)
        assert train.wait(RECOVERY_SECONDS) == 0, self.output
        self.process = self.spawn(*self.host(*LEARNER_GROUPS))
        self._actors = self.spawn(*self.host(*ACTOR_GROUPS))

    def host(self, *groups: str) -> tuple[str, ...]:
        """The command of a host."""
        return ("host", f"--run-dir={self.run_dir.root}", "--groups", *groups)

    def counts(self) -> TableCounts | None:
        """Asked as an actor host asks: through the gate."""
        key = self.run_dir.keys / actor_key(0)
        with OpenTunnel(key, self.run_dir.address_file) as tunnel:
            return self.counts_at(tunnel.address)

    def __exit__(self, *problem: object) -> None:
        self._actors.send_signal(signal.SIGKILL)
        self._actors.wait(RECOVERY_SECONDS)
        super().__exit__(*problem)


def second_hosts(folder: pathlib.Path, rounds: int) -> Iterator[Round]:
    """A second learner host, so many times: it is refused, and the run goes on untouched."""
    with HostsRun(folder / "run", *FLAGS) as run:
        run.wait_started(RECOVERY_SECONDS)
        for _ in range(rounds):
            yield judged(SECOND_HOST, functools.partial(_second_host, run))


def _second_host(run: HostsRun) -> Round:
    started = time.monotonic()
    second = subprocess.run(
        vantage_command(*run.host(*LEARNER_GROUPS)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=RECOVERY_SECONDS,
        check=False,
    )
    assert second.returncode == 2, f"it ended with code {second.returncode}"
    assert "belongs to host" in second.stderr, second.stderr
    updates = run.highest("updates")
    run.wait_progress(RECOVERY_SECONDS)
    run.wait("more updates", lambda: run.highest("updates") > updates, RECOVERY_SECONDS)
    seconds = time.monotonic() - started
    assert run.all_running() and run.restarts() == 0, f"it disturbed {run.nodes()}"
    assert not run.run_dir.stop_file.exists(), "it asked the run to stop"
    return Round(SECOND_HOST, seconds)


def rounds_of_own_runs(
    folder: pathlib.Path, only: str, *, slow_rounds: int, quick_rounds: int
) -> Iterator[Round]:
    """Every fault of this kind whose name contains `only`."""
    attempts: dict[str, Callable[[pathlib.Path], Round]] = {
        STUCK: stuck_learner,
        DIVERGED: diverged_loss,
        FULL_DISK: full_disk,
    }
    for hours in _CLOCK_HOURS:
        name = f"clock jumps by {hours:+d} h"
        attempts[name] = functools.partial(clock_jumps, name, hours)
    for number, name in enumerate(attempts):
        for repeat in range(slow_rounds if only in name else 0):
            place = folder / f"{number}-{repeat}"
            place.mkdir()
            yield judged(name, functools.partial(attempts[name], place))
    if only in SECOND_HOST:
        yield from second_hosts(folder, quick_rounds)


if __name__ == "__main__":
    here = functools.partial(_full_disk_here, pathlib.Path(sys.argv[1]))
    print(json.dumps(judged(FULL_DISK, here)))
