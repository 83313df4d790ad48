"""The supervisor's end of the fork server: nodes that start at once, as processes like others.

The server imports while the supervisor goes on; what is asked of it until then waits here. When it
dies, the kernel kills all that it forked, and the next node that is started gets a new server.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from launch.supervise.fork_server_entry import MOST_BYTES, READY, Answer, Request, Target, encode
from launch.supervise.namespace import Namespace
from launch.supervise.node_process import die_with_parent

_MODULE = "launch.supervise.fork_server_entry"
_SEND_SECONDS = 10  # bounds a hang of a server that is ready
_END_SECONDS = 10.0


class ForkServer:
    """Forks nodes into the namespace, if there is one; started with the first of them."""

    def __init__(self, environment: Mapping[str, str], namespace: Namespace | None = None):
        self._environment = environment
        self._files = () if namespace is None else namespace.files
        self._server: _Server | None = None

    def start(self) -> None:
        """Has a server import what nodes need, unless one lives."""
        if self._server is None or self._server.is_gone:
            self._server = _Server(self._environment)

    def fork(
        self, target: Target, *, variables: Mapping[str, str], log: int, pipe: int
    ) -> "ForkedProcess":
        """A process in which the target's function is called."""
        self.start()
        assert self._server is not None
        return self._server.fork(target, variables, (log, pipe, *self._files))

    def close(self) -> None:
        """Ends the server, and what it forked."""
        if self._server is not None:
            self._server.end()


class ForkedProcess:
    """A process that the server forks: what `subprocess.Popen` is of a program."""

    def __init__(self, server: "_Server", request: Request, files: Sequence[int]):
        self._server, self._request = server, request
        # Ours, until it has been sent.
        self._files = [os.dup(file) for file in files]
        self._log = os.dup(files[0])
        self._signal_at_start: int | None = None
        self._killed_at: float | None = None
        self.pid: int | None = None
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        if self.returncode is None:
            self._server.listen()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """What has not started yet gets it then; a server that does not do its part is ended."""
        if self.poll() is not None:
            return
        if number == signal.SIGKILL:
            self._killed_at = self._killed_at or time.monotonic()
        if self.pid is not None:
            self._signal(self.pid, number)
        else:
            self._signal_at_start = number
        if self._killed_at is not None and (
            self.pid is None or time.monotonic() - self._killed_at > _END_SECONDS
        ):
            self._server.end()

    def send(self, channel: socket.socket) -> None:
        """Asks the server for it."""
        socket.send_fds(channel, [encode(self._request)], self._files)
        self._close_files()

    def started(self, pid: int) -> None:
        """The server has forked it."""
        self.pid = pid
        if self._signal_at_start is not None:
            self._signal(pid, self._signal_at_start)

    def ended(self, code: int, why: str = "") -> None:
        """It has ended, or never began; the reason goes where its own words would be."""
        self.returncode = code
        if why:
            os.write(self._log, f"{why}\n".encode())
        self._close_files()
        os.close(self._log)

    def _signal(self, pid: int, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, number)

    def _close_files(self) -> None:
        while self._files:
            os.close(self._files.pop())


class _Server:
    """One server's process, and the nodes that were asked of it and have not ended."""

    def __init__(self, environment: Mapping[str, str]):
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        bound = struct.pack("ll", _SEND_SECONDS, 0)
        self._channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)
        self._output = os.fdopen(os.memfd_create("fork-server"), "w+b")
        self._forks: dict[int, ForkedProcess] = {}
        self._waiting: list[int] | None = []  # for the server to be ready
        self._num_forks = 0
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno())],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
                # Its own session: Ctrl-C reaches the supervisor alone.
                start_new_session=True,
                preexec_fn=die_with_parent(os.getpid()),
            )

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, and all that it forked with it."""
        self.listen()
        return self._channel.fileno() == -1

    def fork(
        self, target: Target, variables: Mapping[str, str], files: Sequence[int]
    ) -> ForkedProcess:
        """Asks for a node, at once or when the server is ready."""
        number = self._num_forks
        self._num_forks += 1
        process = ForkedProcess(self, Request(number, target, variables), files)
        self._forks[number] = process
        if self._waiting is None:
            self._send(process)
        else:
            self._waiting.append(number)
        return process

    def listen(self) -> None:
        """Hears what the server has said."""
        while self._channel.fileno() != -1:
            try:
                message = self._channel.recv(MOST_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except ConnectionError:
                message = b""
            if not message:
                self.end()
            elif message == READY:
                waiting, self._waiting = self._waiting or (), None
                for number in waiting:
                    self._send(self._forks[number])
            else:
                self._take(Answer(*json.loads(message)))

    def end(self) -> None:
        """Ends it; the kernel ends what it forked."""
        if self._channel.fileno() == -1:
            return
        self._channel.close()
        self._process.kill()
        self._process.wait(_END_SECONDS)
        self._output.seek(0)
        words = self._output.read().decode(errors="replace").strip().splitlines()
        self._output.close()
        why = (
            f"the process that nodes are forked from has ended: {words[-1] if words else 'killed'}"
        )
        while self._forks:
            self._forks.popitem()[1].ended(-signal.SIGKILL, why)

    def _send(self, process: ForkedProcess) -> None:
        try:
            process.send(self._channel)
        except OSError:  # it is gone, or hangs
            self.end()

    def _take(self, answer: Answer) -> None:
        if answer.exit_code is None:
            self._forks[answer.number].started(answer.pid)
        else:
            self._forks.pop(answer.number).ended(answer.exit_code)
