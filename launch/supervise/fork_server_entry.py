"""The process that a host's nodes are forked from, with all their imports behind it.

`python -m launch.supervise.fork_server_entry SOCKET`: the supervisor holds the other end, asks
there for nodes, and is told which process each is and how that ended. Importing TensorFlow, which
Reverb needs, takes every process seconds of a core and half a GB; a fork starts at once and shares
that memory. The learner is not forked: it has a device and threads of its own.

This process never starts a thread, nor anything else that a child would have half of: it imports,
and waits. Python's own fork server (`multiprocessing`) would make the supervisor wait, with no
bound, until all is imported, and import the supervisor's main module in every child.
"""

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from launch import heartbeat
from launch.quick_imports import import_for_good
from launch.supervise.namespace import Namespace
from launch.supervise.node_process import die_with_parent

PRELOADED = (
    "launch.supervise.node_entry",
    "launch.nodes.actor",
    "launch.nodes.evaluator",
    "launch.nodes.monitor",
)
MOST_BYTES = 1 << 16  # of a message
_MOST_FILES = 8
_PR_SET_NAME = 15


class Target(NamedTuple):
    """What a fork is to do: call `main` of a module with these arguments, and end."""

    name: str  # what `top` calls it
    module: str
    arguments: Sequence[str]


class Request(NamedTuple):
    """A node to be forked; its log, its heartbeat and the files of its namespace come with it."""

    number: int
    target: Target
    variables: Mapping[str, str]  # on top of this process's environment


class Answer(NamedTuple):
    """What became of a request: a process, and in the end its exit code."""

    number: int
    pid: int
    exit_code: int | None


READY = b"ready"  # the first message: from now on answers come at once


def main(argv: list[str]) -> None:
    """Imports, and forks until the supervisor closes its end or is gone."""
    _, descriptor = argv
    # The collector never looks at them, and so never writes to pages that children share.
    import_for_good(PRELOADED)
    with socket.socket(fileno=int(descriptor)) as channel, _ends_of_children() as ends:
        channel.send(READY)
        _serve(channel, ends)


def _serve(channel: socket.socket, ends: int) -> None:
    numbers: dict[int, int] = {}  # of a child's pid
    while True:
        ready, _, _ = select.select([channel.fileno(), ends], [], [])
        if ends in ready:
            os.read(ends, MOST_BYTES)
            for pid, code in _ended():
                channel.send(encode(Answer(numbers.pop(pid), pid, code)))
        if channel.fileno() in ready:
            message, files, _, _ = socket.recv_fds(channel, MOST_BYTES, _MOST_FILES)
            if not message:
                return  # the kernel ends the children with this process
            number, target, variables = json.loads(message)
            request = Request(number, Target(*target), variables)
            parent = os.getpid()
            pid = os.fork()
            if pid == 0:
                channel.close()
                os.close(ends)
                _become(request, parent, *files)
            for file in files:
                os.close(file)
            numbers[pid] = request.number
            channel.send(encode(Answer(request.number, pid, None)))


def _become(request: Request, parent: int, log: int, pipe: int, *namespace: int) -> NoReturn:
    """The child's part: what starting a program would do, and then the node itself."""
    try:
        os.close(signal.set_wakeup_fd(-1))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(log, sys.stdout.fileno())
        os.dup2(log, sys.stderr.fileno())
        os.close(log)
        os.setsid()
        with Namespace(list(namespace)) as network:
            die_with_parent(parent, network.enter)()
        ctypes.CDLL(None).prctl(_PR_SET_NAME, request.target.name.encode())
        os.environ.update(request.variables, **{heartbeat.VARIABLE: str(pipe)})
        _, module, arguments = request.target
        importlib.import_module(module).main([module, *arguments])
    except BaseException:
        traceback.print_exc()
    os._exit(1)  # a node's `main` ends its process


@contextlib.contextmanager
def _ends_of_children() -> Iterator[int]:
    """A file that can be read from whenever a child has ended."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reading)
        os.close(writing)


def _ended() -> Iterator[tuple[int, int]]:
    """Children that have ended, each once, with their exit codes: minus the signal, if by one."""
    with contextlib.suppress(ChildProcessError):
        while (end := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            pid, status = end
            yield pid, os.waitstatus_to_exitcode(status)


def encode(message: Request | Answer) -> bytes:
    """One packet of the socket."""
    return json.dumps(message).encode()


if __name__ == "__main__":
    main(sys.argv)
