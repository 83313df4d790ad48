"""The tunnel on an actor host: a unix socket of its own user, behind which replay is.

`python -m launch.gate.tunnel KEY_FILE ADDRESS_FILE LISTENER STOP_FILE` is a node of an actor host.
LISTENER is the number of an open unix socket, in a folder that nobody else can enter. The gate's
address and the key are read for every connection, so that a learner's host that came back elsewhere
is found, and nothing but two small files is needed to reach replay. STOP_FILE is made when the gate
says that the run is over: an actor host may share no file system with the learner's.
"""

import contextlib
import functools
import logging
import pathlib
import select
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

from launch.errors import InputError
from launch.gate import keys, process, relay
from launch.gate.tls import OVER, tunnel_context
from launch.run_dir import read_address

_CONNECT_SECONDS = 10.0
# gRPC gives a connection up after 20 s, and waits ever longer before it makes another: one that is
# held until the gate is there again finds it at once.
_HOLD_SECONDS = 18.0
_RETRY_SECONDS = 0.5
_MAX_CONNECTING = 256
_MAX_UNIX_PATH = 100  # the kernel takes 107
_BACKLOG = 128


class GateAwayError(Exception):
    """There is no way to replay for now."""


class RunOverError(Exception):
    """The gate has said that the run is over."""


class Tunnel:
    """Takes connections of this host, and carries each to the gate."""

    def __init__(
        self,
        loop: relay.Relay,
        listener: socket.socket,
        connect: Callable[[], ssl.SSLSocket],
        *,
        hold_seconds: float = _HOLD_SECONDS,
        on_over: Callable[[], None] = lambda: None,
    ):
        """A connection is held for `hold_seconds` while the gate is away.

        `on_over` is called when the gate says that the run is over.
        """
        self._loop, self._listener, self._connect = loop, listener, connect
        self._on_over = on_over
        self._hold_seconds = hold_seconds
        self._connecting = 0
        self.problem: str | None = None  # why the last connection failed
        listener.setblocking(False)
        loop.watch(listener, lambda events: self._accept())

    def _accept(self) -> None:
        if self._connecting >= _MAX_CONNECTING:
            # Those in the queue wait until one of these has come through, or not.
            self._loop.change(self._listener, 0)
            return
        try:
            near, _ = self._listener.accept()
        except BlockingIOError:
            return
        self._connecting += 1
        # A name may take long to look up, and nobody else must wait for it.
        threading.Thread(target=self._fetch, args=(near,), daemon=True).start()

    def _fetch(self, near: socket.socket) -> None:
        deadline = time.monotonic() + self._hold_seconds
        while True:
            try:
                far = self._connect()
            except RunOverError as error:
                self._on_over()
                self._loop.call(functools.partial(self._say, str(error)))
                self._loop.call(functools.partial(self._give_up, near))
                return
            except (GateAwayError, InputError, OSError) as error:
                self._loop.call(functools.partial(self._say, str(error)))
                if isinstance(error, InputError) or time.monotonic() > deadline:
                    self._loop.call(functools.partial(self._give_up, near))
                    return
                time.sleep(_RETRY_SECONDS)
            else:
                self._loop.call(functools.partial(self._join, near, far))
                return

    def _join(self, near: socket.socket, far: ssl.SSLSocket) -> None:
        self._connecting_one_less()
        self._loop.join(near, far, on_end=self._ended)

    def _give_up(self, near: socket.socket) -> None:
        self._connecting_one_less()
        near.close()

    def _connecting_one_less(self) -> None:
        self._connecting -= 1
        self._loop.change(self._listener, select.EPOLLIN)

    def _ended(self, problem: Exception | None) -> None:
        # The gate judges a key after this end has done its part: its word comes as a first answer.
        if isinstance(problem, ssl.SSLError):
            self._say(f"the gate refused this host's key: {problem.reason}")

    def _say(self, problem: str) -> None:
        if problem != self.problem:
            logging.warning("%s", problem)
        self.problem = problem


def connect(key_file: pathlib.Path, address_file: pathlib.Path) -> ssl.SSLSocket:
    """Connects to the gate, as both files say now."""
    address = read_address(address_file)
    if address is None:
        raise GateAwayError(f"no address in {address_file}")
    host, _, port = address.rpartition(":")
    key = keys.read_key(key_file)
    try:
        raw = socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise GateAwayError(f"no gate at {address}: {error}") from None
    try:
        relay.prepare_tcp(raw)
        far = tunnel_context(key).wrap_socket(raw, server_hostname=key.run_id)
    except OSError as error:
        raw.close()
        raise GateAwayError(f"the gate at {address} is not this run's: {error}") from None
    if far.selected_alpn_protocol() == OVER:
        _part(far)
        raise RunOverError(f"the gate at {address} says that the run is over")
    return far


def _part(far: ssl.SSLSocket) -> None:
    """Waits until the gate knows who was told: it closes the connection then."""
    with far, contextlib.suppress(OSError):
        far.recv(1)


@contextlib.contextmanager
def unix_listener() -> Iterator[socket.socket]:
    """A unix socket in a folder that nobody else can enter, both gone afterwards."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vantage-"))
        if len(folder) > _MAX_UNIX_PATH - len("/replay"):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vantage-", dir="/tmp"))
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(f"{folder}/replay")
        listener.listen(_BACKLOG)
        yield listener


def address_of(listener: socket.socket) -> str:
    """The address of a unix socket, as gRPC takes it."""
    return f"unix:{listener.getsockname()}"


class OpenTunnel:
    """A tunnel in a thread of this process, for a question or two."""

    def __init__(
        self,
        key_file: pathlib.Path,
        address_file: pathlib.Path,
        *,
        hold_seconds: float = 0.0,
        on_over: Callable[[], None] = lambda: None,
    ):
        self._stack = contextlib.ExitStack()
        listener = self._stack.enter_context(unix_listener())
        self.address = address_of(listener)
        self._loop = relay.Relay()
        self._tunnel = Tunnel(
            self._loop,
            listener,
            lambda: connect(key_file, address_file),
            hold_seconds=hold_seconds,
            on_over=on_over,
        )
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._loop.run, args=(lambda: not self._closed.is_set(),), daemon=True
        )
        self._thread.start()

    @property
    def problem(self) -> str | None:
        """Why the last connection failed."""
        return self._tunnel.problem

    def __enter__(self) -> "OpenTunnel":
        return self

    def __exit__(self, *problem: object) -> None:
        self._closed.set()
        self._loop.call(lambda: None)  # it looks at once
        self._thread.join(_CONNECT_SECONDS)
        self._loop.close()
        self._stack.close()


def main(argv: list[str]) -> None:
    """Entry point of the process."""
    process.prepare()
    key_file, address_file, _, stop_file = map(pathlib.Path, argv[1:])
    loop = relay.Relay()
    Tunnel(
        loop,
        socket.socket(fileno=int(argv[3])),
        lambda: connect(key_file, address_file),
        on_over=stop_file.touch,
    )
    process.relay_until_stopped("tunnel", loop, lambda: None)


if __name__ == "__main__":
    main(sys.argv)
