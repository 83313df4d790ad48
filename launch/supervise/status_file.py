"""A host's status file: what its supervisor says of itself and its nodes, written and read.

Whether a supervisor lives is never told by comparing clocks, which differ between hosts. One of
this machine is looked up; one of another machine is watched for its next words.
"""

import itertools
import json
import os
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from launch.machine.host_name import this_host
from launch.node_status import HostReport, NodeStatus, from_json, to_json
from launch.run_dir import RunDir
from launch.supervise.file_age import file_age_seconds
from launch.supervise.proc_stat import start_of, this_machine
from report.atomic_file import write_atomically
from report.json_file import read_json

# A supervisor writes every few seconds; after this long without a word it counts as dead.
SILENT_SECONDS = 60.0
_WATCH_SECONDS = 15.0  # the same for someone who asks and waits for the answer
_POLL_SECONDS = 0.2
JOB_VARIABLE = "SLURM_JOB_ID"
_beats = itertools.count(1)


class HostStatus(NamedTuple):
    """What a supervisor last wrote, and whether it still lives."""

    alive: bool
    state: str
    host: str
    pid: int
    job: str | None  # of Slurm, if it started the supervisor
    started: float  # when it began, by the clock of its host
    updated: float  # when it wrote, by the same clock
    silent_seconds: float | None  # since then; None if it lives, or where nobody can tell
    nodes: list[NodeStatus]
    problem: str | None  # why the host could not join, or why its file cannot be read


def write_host_status(
    path: pathlib.Path,
    state: str,
    *,
    started: float,
    nodes: Sequence[NodeStatus] = (),
    problem: str | None = None,
) -> None:
    """Replaces what this process said before; `problem` is why the host could not join."""
    report = HostReport(
        state=state,
        host=this_host(),
        machine=this_machine(),
        pid=os.getpid(),
        pid_start=start_of(os.getpid()),
        job=os.environ.get(JOB_VARIABLE),
        started=started,
        updated=time.time(),
        beat=next(_beats),
        problem=problem,
    )
    write_atomically(path, json.dumps(to_json(report, nodes), indent=1))


class StatusWriter:
    """A host's status file while it is at work: a full disk is said once, and ends nothing."""

    def __init__(self, path: pathlib.Path, say: Callable[[str], None]):
        self._path, self._say = path, say
        self._started = time.time()
        self._problem: str | None = None

    def write(self, state: str, nodes: Sequence[NodeStatus]) -> None:
        """Replaces what was said before, where that can be done."""
        try:
            write_host_status(self._path, state, started=self._started, nodes=nodes)
            self._problem = None
        except OSError as error:
            if error.strerror != self._problem:
                self._say(f"cannot write {self._path}: {error.strerror}")
            self._problem = error.strerror


def read_status(run_dir: RunDir) -> HostStatus | None:
    """The run's own supervisor, that of the learner's host; None if the run was never started.

    Waits for a word from a supervisor on another machine, and for a damaged file to be replaced.
    """
    return _read_all([run_dir.status_file])[0]


def read_hosts(run_dir: RunDir, actor_hosts: int) -> tuple[HostStatus | None, list[HostStatus]]:
    """The run's own supervisor and those of its actor hosts, without those that never came up."""
    paths = [run_dir.status_file, *(run_dir.host_file(index) for index in range(actor_hosts))]
    learner, *actors = _read_all(paths)
    return learner, [status for status in actors if status is not None]


def read_statuses(run_dirs: Sequence[RunDir]) -> list[HostStatus | None]:
    """As `read_status`, of many runs: whatever has to be waited for, the wait is one."""
    return _read_all([run_dir.status_file for run_dir in run_dirs])


class _Words(NamedTuple):
    """What a file says; `report` is None if it cannot be read, for a `problem`."""

    report: HostReport | None
    nodes: list[NodeStatus]
    problem: str | None = None

    @property
    def lives(self) -> bool | None:
        """Whether the process that wrote this is alive; None where that is not to be seen."""
        said = self.report
        if said is None:
            return None
        if not said.is_up:
            return False
        if said.machine and said.machine == this_machine() and said.pid_start is not None:
            return start_of(said.pid) == said.pid_start
        return None


def _read_all(paths: Sequence[pathlib.Path]) -> list[HostStatus | None]:
    """All hosts, watched at the same time."""
    first = [_read(path) for path in paths]
    answers = {i: words.lives for i, words in enumerate(first) if words is not None}
    newest = dict(enumerate(first))
    deadline = time.monotonic() + _WATCH_SECONDS
    while any(lives is None for lives in answers.values()) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        for i in [i for i, lives in answers.items() if lives is None]:
            words = _read(paths[i])
            if words is not None and words != first[i]:
                # Whoever writes is alive, unless it just wrote that it has ended.
                lives = words.lives
                answers[i] = words.report is not None if lives is None else lives
                newest[i] = words
    return [
        None if words is None else _host_status(paths[i], words, alive=answers[i] is True)
        for i, words in newest.items()
    ]


def _host_status(path: pathlib.Path, words: _Words, *, alive: bool) -> HostStatus:
    said = words.report
    silent_seconds = None if alive else file_age_seconds(path)
    if said is None:
        return HostStatus(
            alive, "unknown", "?", 0, None, 0.0, 0.0, silent_seconds, [], words.problem
        )
    return HostStatus(
        alive=alive,
        state="dead" if said.is_up and not alive else said.state,
        host=said.host,
        pid=said.pid,
        job=said.job,
        started=said.started,
        updated=said.updated,
        silent_seconds=silent_seconds,
        nodes=words.nodes,
        problem=said.problem,
    )


def _read(path: pathlib.Path) -> _Words | None:
    try:
        return _Words(*from_json(read_json(path)))
    except FileNotFoundError:
        return None
    except OSError as error:
        return _Words(None, [], f"{path} cannot be read: {error.strerror}")
    except ValueError as error:
        return _Words(None, [], f"{path} cannot be read: {error}")
