"""What can happen to a run. A fault is injected, and returns when its effect is there."""

import contextlib
import pathlib
import random
import resource
import signal
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.launch.live_run import LiveRun

ROLES = ("actor-1", "evaluator-0", "monitor-0", "replay-0", "learner-0")
_RECOVERY_SECONDS = 180.0
_CONNECTIONS = 10_000
_CONNECT_SECONDS = 60.0


class Fault(NamedTuple):
    """A name, and what to do to the run."""

    name: str
    inject: Callable[[LiveRun, random.Random], None]
    ends_all: bool = False  # no role lives through it


def _send(name: str, number: signal.Signals) -> Callable[[LiveRun, random.Random], None]:
    def inject(run: LiveRun, rng: random.Random) -> None:
        del rng
        restarts = run.nodes()[name]["restarts"]
        run.signal(name, number)
        # A suspended node is left so: the supervisor has to notice.
        run.wait(
            f"{name} is started again",
            lambda: run.nodes().get(name, {}).get("restarts", 0) > restarts,
            _RECOVERY_SECONDS,
        )

    return inject


def _kill_supervisor(run: LiveRun, rng: random.Random) -> None:
    del rng
    run.kill()
    run.resume()


def _suspend_supervisor(run: LiveRun, rng: random.Random) -> None:
    run.process.send_signal(signal.SIGSTOP)
    time.sleep(rng.uniform(2, 5))
    run.process.send_signal(signal.SIGCONT)


def _damage_learner(damage: Callable[[pathlib.Path], None]) -> Callable:
    def inject(run: LiveRun, rng: random.Random) -> None:
        del rng
        run.wait(
            "two checkpoints",
            lambda: len(list(run.run_dir.checkpoints.glob("*.npz"))) > 1,
            _RECOVERY_SECONDS,
        )
        run.kill()
        damage(max(run.run_dir.checkpoints.glob("checkpoint-*.npz")))
        run.resume()

    return inject


def _damage_replay(run: LiveRun, rng: random.Random) -> None:
    del rng
    run.wait(
        "a replay checkpoint",
        lambda: list(run.run_dir.replay.glob("*/*.tfrecord")),
        _RECOVERY_SECONDS,
    )
    run.kill()
    for file in run.run_dir.replay.glob("*/*.tfrecord"):
        halve(file)
    run.resume()


def _flood(run: LiveRun, rng: random.Random) -> None:
    """Connections that say nothing or nonsense, held until the run has gone on in spite of them."""
    restarts = {name: node["restarts"] for name, node in run.nodes().items()}
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    port = int(run.address.rpartition(":")[2])
    with contextlib.ExitStack() as held:
        for number in range(_CONNECTIONS):
            stranger = socket.create_connection(("127.0.0.1", port), _CONNECT_SECONDS)
            held.enter_context(stranger)
            if number % 100 == 0:
                with contextlib.suppress(OSError):  # the server may well hang up
                    stranger.sendall(rng.randbytes(1000))
        run.wait_progress(_RECOVERY_SECONDS)
    after = {name: node["restarts"] for name, node in run.nodes().items()}
    assert after == restarts, f"restarts before {restarts}, after {after}"


def halve(path: pathlib.Path) -> None:
    """As a write that was cut short leaves it."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def flip(path: pathlib.Path) -> None:
    """One wrong byte in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


LIVE_FAULTS = (
    *(Fault(f"kill -9 {role}", _send(role, signal.SIGKILL)) for role in ROLES),
    *(Fault(f"kill -STOP {role}", _send(role, signal.SIGSTOP)) for role in ROLES),
    Fault("kill -9 supervisor, resumed", _kill_supervisor, ends_all=True),
    Fault("kill -STOP supervisor, 2-5 s", _suspend_supervisor),
    Fault("learner checkpoint half-written", _damage_learner(halve), ends_all=True),
    Fault("learner checkpoint corrupt", _damage_learner(flip), ends_all=True),
    Fault("replay checkpoint half-written", _damage_replay, ends_all=True),
    Fault(f"{_CONNECTIONS:,} idle or noisy connections", _flood),
)


def fill_disk(folder: pathlib.Path) -> pathlib.Path:
    """Takes all space that is left in a folder's file system; returns the file that holds it."""
    ballast = folder / "ballast"
    # Without a buffer: closing it would have to write what did not fit.
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    return ballast
