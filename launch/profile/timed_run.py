"""A real run, watched for a while once it learns: rates, waits and core time per role."""

import contextlib
import pathlib
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import psutil

from launch.config import Config
from launch.invocation import vantage_command
from launch.node_status import NodeStatus
from launch.profile.rehearsal import Pretence, rehearsal_command
from launch.profile.timing import core_seconds
from launch.run_dir import RunDir
from launch.supervise.node_process import dying_with_parent
from launch.supervise.status_file import read_status
from report.metrics_file import Row, read_rows

_WARM_UP_SECONDS = 600.0
_SETTLE_SECONDS = 8.0  # compilation is over, and the limiter has found its balance
_NOTICE_SECONDS, _STOP_SECONDS = 1.0, 120.0
_TURNS = 10  # a run is held still so often, if at all


class RunFailedError(Exception):
    """The run ended, or never began to learn."""


class Pause(NamedTuple):
    """When a run was held still."""

    began: float
    ended: float


class RoleUse(NamedTuple):
    """What the nodes of one role did, over the time watched."""

    nodes: int
    cores: float  # core seconds per second, all nodes together
    wait_fraction: float | None  # mean over nodes; None for roles that do not say


class TimedRun(NamedTuple):
    """One watched run."""

    seconds: float
    frames_per_second: float
    steps_per_second: float
    updates_per_second: float
    samples_per_insert: float | None
    batches_ready: float | None
    params_age_p50: float | None
    params_age_p99: float | None
    stolen_cores: float  # core seconds per second that went to other guests of the same host
    roles: dict[str, RoleUse]


def run_for(
    config: Config,
    seconds: float,
    *,
    in_pauses: Callable[[], None] | None = None,
    pretence: Pretence | None = None,
    settle_seconds: float | None = None,
) -> TimedRun:
    """Starts a run in a throw-away folder, watches it, stops it.

    With a `pretence` it is a rehearsal, of which some parts are not real.
    With `in_pauses` the run is held still again and again, and that is called meanwhile: so what it
    measures and the run share the machine's fast and slow moments. Pauses count for nothing else.
    """
    with tempfile.TemporaryDirectory(prefix="vantage-profile-") as folder:
        run_dir = RunDir(pathlib.Path(folder) / "run")
        run_dir.create(config)
        output = pathlib.Path(folder) / "output"
        if pretence is None:
            # Flags of a run to resume start from its stored config; it holds nothing else yet.
            command = vantage_command("train", "--run-dir", str(run_dir.root), "--resume")
        else:
            pretence.save(run_dir)
            command = rehearsal_command(run_dir)
        with _running(command, output) as child:
            _wait_until_learning(run_dir, child, output)
            time.sleep(_SETTLE_SECONDS if settle_seconds is None else settle_seconds)
            return _watch(config, run_dir, seconds, in_pauses)


@contextlib.contextmanager
def _running(command: list[str], output: pathlib.Path) -> Iterator["subprocess.Popen[bytes]"]:
    with output.open("wb") as f:
        # A run without an end must have this one.
        child = subprocess.Popen(dying_with_parent(command), stdout=f, stderr=subprocess.STDOUT)
    try:
        yield child
    finally:
        # Nothing of it is kept, so it need not save: the second signal kills what is left.
        for seconds in (_NOTICE_SECONDS, _STOP_SECONDS):
            child.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=seconds)
        if child.poll() is None:
            child.kill()
            child.wait()


def _wait_until_learning(
    run_dir: RunDir, child: "subprocess.Popen[bytes]", output: pathlib.Path
) -> None:
    deadline = time.monotonic() + _WARM_UP_SECONDS
    while not any(row.get("updates", 0) > 0 for row in _rows(run_dir)):
        if child.poll() is not None:
            said = " / ".join(output.read_text().splitlines()[-2:])
            raise RunFailedError(f"the run ended before it learned, and said: {said}")
        if time.monotonic() > deadline:
            raise RunFailedError(f"no update within {_WARM_UP_SECONDS:.0f} s")
        time.sleep(0.5)


def _watch(
    config: Config, run_dir: RunDir, seconds: float, in_pauses: Callable[[], None] | None
) -> TimedRun:
    began, before = time.time(), _core_seconds(run_dir)
    pauses: list[Pause] = []
    stolen = 0.0
    for _ in range(_TURNS):
        stolen -= psutil.cpu_times().steal
        time.sleep(seconds / _TURNS)
        stolen += psutil.cpu_times().steal
        if in_pauses is not None:
            with _held_still(run_dir):
                paused = time.time()
                in_pauses()
                pauses.append(Pause(paused, time.time()))
    after, ended = _core_seconds(run_dir), time.time()
    rows = [row for row in _rows(run_dir) if began <= row["time"] <= ended]
    seconds = ended - began - _paused_seconds(pauses, began, ended)
    return summarize(config, rows, before, after, seconds, pauses, stolen_seconds=stolen)


@contextlib.contextmanager
def _held_still(run_dir: RunDir) -> Iterator[None]:
    """Stops the nodes where they are; all of them, so that none waits for another."""
    nodes = [psutil.Process(node.pid) for node in _nodes(run_dir)]
    try:
        for node in nodes:
            node.suspend()
        yield
    finally:
        for node in nodes:
            node.resume()


def _paused_seconds(pauses: Iterable[Pause], began: float, ended: float) -> float:
    return sum(pause.ended - pause.began for pause in pauses if began <= pause.began < ended)


def summarize(
    config: Config,
    rows: list[Row],
    before: dict[str, list[float]],
    after: dict[str, list[float]],
    seconds: float,
    pauses: Iterable[Pause] = (),
    *,
    stolen_seconds: float = 0.0,
) -> TimedRun:
    """Turns metrics rows, and core seconds per node at both ends, into one record."""
    learner = [row for row in rows if row["role"] == "learner"]
    if len(learner) < 2:
        raise RunFailedError(f"the learner reported {len(learner)} times in {seconds:.0f} s")
    first, last = learner[0], learner[-1]
    elapsed = last["time"] - first["time"]
    elapsed -= _paused_seconds(pauses, first["time"], last["time"])
    frames_per_second = (last["frames"] - first["frames"]) / elapsed
    ages = [row["params_age_seconds"] for row in rows if "params_age_seconds" in row]
    return TimedRun(
        seconds=seconds,
        frames_per_second=frames_per_second,
        steps_per_second=frames_per_second / config.environment.action_repeat,
        updates_per_second=(last["updates"] - first["updates"]) / elapsed,
        samples_per_insert=last.get("samples_per_insert"),
        batches_ready=_mean(learner, "batches_ready"),
        params_age_p50=float(np.percentile(ages, 50)) if ages else None,
        params_age_p99=float(np.percentile(ages, 99)) if ages else None,
        stolen_cores=stolen_seconds / seconds,
        roles={
            role: _role_use(
                role, rows, len(nodes), (sum(nodes) - sum(before.get(role, []))) / seconds
            )
            for role, nodes in after.items()
        },
    )


def _role_use(role: str, rows: list[Row], nodes: int, cores: float) -> RoleUse:
    mine = [row for row in rows if row["role"].split("/")[0] == role]
    wait = {"learner": "data_wait_fraction", "actor": "insert_wait_fraction"}.get(role)
    return RoleUse(nodes, cores, None if wait is None else _mean(mine, wait))


def _mean(rows: list[Row], key: str) -> float | None:
    values = [row[key] for row in rows if row.get(key) is not None]
    return float(np.mean(values)) if values else None


def _core_seconds(run_dir: RunDir) -> dict[str, list[float]]:
    """Core seconds of every node so far, by role."""
    found = defaultdict(list)
    for node in _nodes(run_dir):
        with contextlib.suppress(psutil.NoSuchProcess):  # between two lives; the rates tell
            found[node.role].append(core_seconds(psutil.Process(node.pid)))
    return dict(found)


def _nodes(run_dir: RunDir) -> list[NodeStatus]:
    status = read_status(run_dir)
    if status is None:
        raise RunFailedError("the run wrote no status")
    return status.nodes


def _rows(run_dir: RunDir) -> list[Row]:
    return list(read_rows(run_dir.metrics_file)) if run_dir.metrics_file.exists() else []
