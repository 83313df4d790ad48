"""What can happen to a run that goes on. A fault returns when its effect is there."""

import contextlib
import itertools
import pathlib
import random
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import psutil

from tests.chaos.setting import RECOVERY_SECONDS, TOTAL_STEPS
from tests.launch.engines import stranger
from tests.launch.live_run import LiveRun

ROLES = ("actor-1", "evaluator-0", "monitor-0", "replay-0", "learner-0")
FORKED = ("actor-0", *(role for role in ROLES if role != "learner-0"))
_CONNECTIONS = 10_000
_CONNECT_SECONDS = 60.0
Inject = Callable[[LiveRun, random.Random], None]


class Fault(NamedTuple):
    """A name, which others may share, and what to do to the run."""

    name: str
    inject: Inject
    quick: bool = False  # over in some seconds
    ends_all: bool = False  # no actor lives through it
    kills: tuple[str, ...] = ()  # nodes that the supervisor has to start again


def _send(number: signal.Signals, *names: str) -> Inject:
    """The signal to each of these; a suspended node is left so: the supervisor has to notice."""

    def inject(run: LiveRun, rng: random.Random) -> None:
        del rng
        with _starts_again(run, names):
            for name in names:
                run.signal(name, number)

    return inject


def _kill_fork_server(run: LiveRun, rng: random.Random) -> None:
    """All that were forked die with it."""
    del rng
    with _starts_again(run, FORKED):
        psutil.Process(run.nodes()[FORKED[0]]["pid"]).parent().kill()


@contextlib.contextmanager
def _starts_again(run: LiveRun, names: tuple[str, ...]) -> Iterator[None]:
    before = {name: run.nodes()[name]["restarts"] for name in names}
    yield
    run.wait(
        f"{' and '.join(names)} started again",
        lambda: all(run.nodes().get(name, {}).get("restarts", 0) > before[name] for name in names),
        RECOVERY_SECONDS,
    )


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
            RECOVERY_SECONDS,
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
        RECOVERY_SECONDS,
    )
    run.kill()
    for file in run.run_dir.replay.glob("*/*.tfrecord"):
        halve(file)
    run.resume()


def _flood(run: LiveRun, rng: random.Random) -> None:
    """Connections that say nothing or nonsense, held until the run has gone on in spite of them."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    port = int(run.address.rpartition(":")[2])
    with _nobody_restarts(run), contextlib.ExitStack() as held:
        for number in range(_CONNECTIONS):
            one = socket.create_connection(("127.0.0.1", port), _CONNECT_SECONDS)
            held.enter_context(one)
            if number % 100 == 0:
                with contextlib.suppress(OSError):  # the server may well hang up
                    one.sendall(rng.randbytes(1000))
        run.wait_progress(RECOVERY_SECONDS)


def _send_junk(run: LiveRun, rng: random.Random) -> None:
    """Everything that a stranger can send or take."""
    del rng
    problems: list[BaseException] = []

    def attack() -> None:
        try:
            stranger.attack(run.address, TOTAL_STEPS)
        except BaseException as error:
            problems.append(error)

    with _nobody_restarts(run):
        # In a thread: its streams would wait without bound for a server that is gone.
        thread = threading.Thread(target=attack, name="stranger", daemon=True)
        thread.start()
        run.wait("the stranger is done", lambda: not thread.is_alive(), RECOVERY_SECONDS)
        assert not problems, f"the stranger failed: {problems[0]!r}"
        run.wait_progress(RECOVERY_SECONDS)


@contextlib.contextmanager
def _nobody_restarts(run: LiveRun) -> Iterator[None]:
    before = {name: node["restarts"] for name, node in run.nodes().items()}
    yield
    after = {name: node["restarts"] for name, node in run.nodes().items()}
    assert after == before, f"restarts before {before}, after {after}"


def halve(path: pathlib.Path) -> None:
    """As a write that was cut short leaves it."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def flip(path: pathlib.Path) -> None:
    """One wrong byte in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


_QUICKLY_BACK = ("actor-1", "evaluator-0")
LIVE_FAULTS = (
    *(
        Fault(f"kill -9 {role}", _send(signal.SIGKILL, role), role in _QUICKLY_BACK, kills=(role,))
        for role in ROLES
    ),
    *(
        Fault("kill -9 two roles at once", _send(signal.SIGKILL, *pair), quick=True, kills=pair)
        for pair in itertools.combinations(ROLES, 2)
    ),
    *(Fault(f"kill -STOP {role}", _send(signal.SIGSTOP, role), kills=(role,)) for role in ROLES),
    Fault("kill -9 fork server", _kill_fork_server, ends_all=True, kills=FORKED),
    Fault("kill -9 supervisor, resumed", _kill_supervisor, ends_all=True),
    Fault("kill -STOP supervisor, 2-5 s", _suspend_supervisor, quick=True),
    Fault("learner checkpoint half-written", _damage_learner(halve), ends_all=True),
    Fault("learner checkpoint corrupt", _damage_learner(flip), ends_all=True),
    Fault("replay checkpoint half-written", _damage_replay, ends_all=True),
    Fault(f"{_CONNECTIONS:,} idle or noisy connections", _flood, quick=True),
    Fault("junk of every kind on the port", _send_junk, quick=True),
)
