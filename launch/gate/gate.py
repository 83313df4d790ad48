"""The gate on the learner's host: lets in who has a key of the run, and relays to its replay.

`python -m launch.gate.gate KEY_FILE LISTENER REPLAY_PORT` is a node of the learner's host. LISTENER
is the number of an open socket, made by the supervisor in the host's network, and kept by it: when
this process dies, connections wait for the next one. Replay is reached over the loopback of
whatever namespace this process is in.
"""

import collections
import errno
import functools
import logging
import pathlib
import resource
import select
import socket
import ssl
import sys
import time
from collections.abc import Callable

from launch.gate import keys, process, relay
from launch.gate.admission import Refusals, Waiting
from launch.gate.tls import gate_context

_MAX_PAIRS, _MAX_PAIRS_PER_ADDRESS = 8192, 2048
_SPARE_FILES = 600  # for those that wait, and for Python itself
_ACCEPTED_AT_ONCE = 32  # then it is the turn of those who are in
_BACKLOG = 256
_PAUSE_SECONDS = 1.0  # after a failure to accept


class Gate:
    """Accepts, checks keys, and joins those who have one to replay."""

    def __init__(
        self,
        loop: relay.Relay,
        listener: socket.socket,
        context: ssl.SSLContext,
        replay: tuple[str, int],
        *,
        max_pairs: int = _MAX_PAIRS,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._loop, self._listener, self._context = loop, listener, context
        self._replay, self._max_pairs = replay, max_pairs
        self._waiting = Waiting(self._turn_away, clock)
        self._refusals = Refusals()
        self._inside: collections.Counter[str] = collections.Counter()
        self._accepts_after: float | None = None  # while it does not accept
        listener.setblocking(False)
        loop.watch(listener, lambda events: self._accept())

    def tick(self) -> None:
        """Called every round."""
        self._waiting.drop_late()
        if self._accepts_after is not None and time.monotonic() > self._accepts_after:
            self._accepts_after = None
            self._loop.change(self._listener, select.EPOLLIN)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                sock, (address, *_) = self._listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                # Out of files or memory. They wait in the kernel's queue, which is bounded.
                logging.warning("cannot accept for now: %s", error.strerror)
                self._accepts_after = time.monotonic() + _PAUSE_SECONDS
                self._loop.change(self._listener, 0)
                return
            self._greet(sock, address.removeprefix("::ffff:"))

    def _greet(self, sock: socket.socket, address: str) -> None:
        full = self._loop.num_pairs >= self._max_pairs
        if full or self._inside[address] >= _MAX_PAIRS_PER_ADDRESS:
            self._refusals.say(
                address, f"{self._inside[address]} connections of it are open already"
            )
            sock.close()
            return
        try:
            relay.prepare_tcp(sock)
            sock.setblocking(False)
            secure = self._context.wrap_socket(
                sock, server_side=True, do_handshake_on_connect=False
            )
        except OSError:  # it has left already
            sock.close()
            return
        self._waiting.add(secure, address)
        self._loop.watch(secure, functools.partial(self._shake_hands, secure))

    def _shake_hands(self, sock: ssl.SSLSocket, events: int) -> None:
        del events
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.change(sock, select.EPOLLIN)
            return
        except ssl.SSLWantWriteError:
            self._loop.change(sock, select.EPOLLOUT)
            return
        except OSError as error:
            self._turn_away(sock, self._waiting.remove(sock), _reason(error))
            return
        address = self._waiting.remove(sock)
        self._loop.forget(sock)
        self._join(sock, address)

    def _join(self, sock: ssl.SSLSocket, address: str) -> None:
        replay = socket.socket()
        replay.setblocking(False)
        replay.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # It may still be on its way: then nothing can be sent yet, or an error comes of it later.
        replay.connect_ex(self._replay)
        self._inside[address] += 1
        self._loop.join(sock, replay, on_end=functools.partial(self._left, address))

    def _left(self, address: str, problem: Exception | None) -> None:
        del problem
        self._inside[address] -= 1
        if not self._inside[address]:
            del self._inside[address]

    def _turn_away(self, sock: ssl.SSLSocket, address: str, reason: str) -> None:
        self._refusals.say(address, reason)
        self._loop.dispose(sock)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its key is not of this run, or not of today: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"it does not speak as hosts of this run do: {error.reason}"
    return error.strerror or "it left"


def tcp_listener(port: int) -> socket.socket:
    """A socket that listens on all interfaces, for IPv6 too where there is any; 0 is any port."""
    try:
        return socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
        )
    except OSError as error:
        if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
        return socket.create_server(("", port), backlog=_BACKLOG)


def _raise_file_limit() -> int:
    """Takes all open files this process may have; returns how many pairs they suffice for."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most == resource.RLIM_INFINITY:
        return _MAX_PAIRS
    return max(1, min(_MAX_PAIRS, (most - _SPARE_FILES) // 2))


def main(argv: list[str]) -> None:
    """Entry point of the process."""
    process.prepare()
    _, key_file, listener, port = argv
    key = keys.read_key(pathlib.Path(key_file))
    loop = relay.Relay()
    gate = Gate(
        loop,
        socket.socket(fileno=int(listener)),
        gate_context(key),
        ("127.0.0.1", int(port)),
        max_pairs=_raise_file_limit(),
    )
    logging.info("open until %s", key.ends)
    process.relay_until_stopped("gate", loop, gate.tick)


if __name__ == "__main__":
    main(sys.argv)
