"""Moves bytes between pairs of sockets, in one thread, for both ends of the gate.

Nothing is read from one side that the other has not taken: what waits in here is at most one piece
for each direction of a connection whose reader has stopped, and nothing for all others.
"""

import collections
import contextlib
import functools
import select
import socket
import ssl
from collections.abc import Callable

_PIECE_BYTES = 1 << 18
_RECORD_BYTES = 1 << 14  # the most that TLS gives at once
_ROUND_SECONDS = 0.5  # longest time between two looks at the clock
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_READ, _WRITE = select.EPOLLIN, select.EPOLLOUT
_GONE = select.EPOLLHUP | select.EPOLLERR  # told whether asked for or not

Handler = Callable[[int], None]  # gets the events of epoll


class Relay:
    """The loop: sockets with somebody to call when they are ready, and joined pairs of them."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._calls: collections.deque[Callable[[], None]] = collections.deque()
        self._disposed: list[socket.socket] = []
        self._waking, self._woken = socket.socketpair()
        for end in (self._waking, self._woken):
            end.setblocking(False)
        self._scratch = memoryview(bytearray(_PIECE_BYTES))
        self.watch(self._woken, lambda events: self._run_calls(), _READ)
        self._pairs: set[_Pair] = set()

    @property
    def num_pairs(self) -> int:
        """How many are joined."""
        return len(self._pairs)

    def watch(self, sock: socket.socket, handler: Handler, events: int = _READ) -> None:
        """Has the handler called whenever the socket is ready for these events."""
        self._handlers[sock.fileno()] = handler
        self._poll.register(sock, events)

    def change(self, sock: socket.socket, events: int) -> None:
        """Waits for other events of a watched socket."""
        self._poll.modify(sock, events)

    def forget(self, sock: socket.socket) -> None:
        """Calls nobody for this socket any more."""
        del self._handlers[sock.fileno()]
        self._poll.unregister(sock)

    def dispose(self, sock: socket.socket) -> None:
        """Forgets a socket, and closes it.

        Not before the round is over: its number must not be given to another while events of it
        wait to be looked at.
        """
        self.forget(sock)
        self._disposed.append(sock)

    def join(
        self,
        one: socket.socket,
        other: socket.socket,
        on_end: Callable[[Exception | None], None] = lambda problem: None,
    ) -> None:
        """Passes on what either says to the other, until one of them ends; closes both."""
        pair = _Pair(self, one, other, self._scratch, on_end)
        self._pairs.add(pair)

    def part(self, pair: "_Pair") -> None:
        """No longer counts a pair that has ended."""
        self._pairs.discard(pair)

    def part_all(self) -> None:
        """Ends all pairs; whoever wants to go on connects again."""
        for pair in list(self._pairs):
            pair.close()

    def call(self, function: Callable[[], None]) -> None:
        """Has the loop call a function; the one thing that another thread may ask for."""
        self._calls.append(function)
        with contextlib.suppress(OSError):  # it has been woken often enough, or was closed
            self._waking.send(b"\0")

    def run(self, every_round: Callable[[], bool]) -> None:
        """Goes round until told not to go on, which is asked at least twice a second."""
        while every_round():
            for number, events in self._poll.poll(_ROUND_SECONDS):
                handler = self._handlers.get(number)
                if handler is not None:  # not disposed of in this very round
                    handler(events)
            while self._disposed:
                self._disposed.pop().close()

    def close(self) -> None:
        """Ends all pairs, once nobody goes round any more."""
        self.part_all()
        for sock in (*self._disposed, self._waking, self._woken):
            sock.close()
        self._poll.close()

    def _run_calls(self) -> None:
        self._woken.recv(4096)
        while self._calls:
            self._calls.popleft()()


class _Flow:
    """One direction of a pair."""

    def __init__(self, source: socket.socket, sink: socket.socket, scratch: memoryview):
        self._source, self._sink, self._scratch = source, sink, scratch
        self._rest: memoryview | None = None  # what the sink has not taken
        self._ended = False

    @property
    def blocked(self) -> bool:
        return self._rest is not None

    @property
    def over(self) -> bool:
        return self._ended and self._rest is None

    def pump(self) -> None:
        """Moves what can be moved now, and not more than a piece."""
        if self._rest is not None:
            self._pass_on(self._rest)
        if self._rest is None and not self._ended:
            self._pass_on(self._scratch[: self._fill()])

    def _fill(self) -> int:
        size = 0
        # With room for a whole record: what stayed behind in TLS, epoll would not tell of.
        while size <= _PIECE_BYTES - _RECORD_BYTES:
            try:
                more = self._source.recv_into(self._scratch[size:])
            except _NOT_NOW:
                break
            self._ended = more == 0
            size += more
            if more < _RECORD_BYTES:
                break  # that was all, or epoll tells of the rest
        return size

    def _pass_on(self, data: memoryview) -> None:
        # The scratch is everybody's: what is left of it is kept apart.
        is_own = data is self._rest
        while data:
            try:
                data = data[self._sink.send(data) :]
            except _NOT_NOW:
                self._rest = data if is_own else memoryview(bytes(data))
                return
        self._rest = None


class _Pair:
    """Two joined sockets, from their joining to their end."""

    def __init__(
        self,
        relay: Relay,
        one: socket.socket,
        other: socket.socket,
        scratch: memoryview,
        on_end: Callable[[Exception | None], None],
    ):
        self._relay, self._on_end = relay, on_end
        self._ends = (one, other)
        self._flows = (_Flow(one, other, scratch), _Flow(other, one, scratch))
        self._waits_for = [_READ, _READ]
        for side, end in enumerate(self._ends):
            end.setblocking(False)
            relay.watch(end, functools.partial(self._ready, side))

    def _ready(self, side: int, events: int) -> None:
        outgoing, incoming = self._flows[side], self._flows[1 - side]
        problem: Exception | None = None
        # One who left while nobody takes what it said last would be told of again and again.
        gone = bool(events & _GONE) and outgoing.blocked
        try:
            if events & ~_WRITE:
                outgoing.pump()
            if events & _WRITE:
                incoming.pump()
        except OSError as error:
            problem = error
        if gone or problem is not None or outgoing.over or incoming.over:
            self.close(problem)
            return
        self._choose_events()

    def _choose_events(self) -> None:
        """Reads from a side only while the other takes it."""
        for side, end in enumerate(self._ends):
            events = 0 if self._flows[side].blocked else _READ
            if self._flows[1 - side].blocked:
                events |= _WRITE
            if events != self._waits_for[side]:
                self._waits_for[side] = events
                self._relay.change(end, events)

    def close(self, problem: Exception | None = None) -> None:
        """Ends both sides."""
        for end in self._ends:
            self._relay.dispose(end)
        self._relay.part(self)
        self._on_end(problem)


def prepare_tcp(sock: socket.socket) -> None:
    """Small messages go at once, and a peer that vanished is noticed within two minutes."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (
        (socket.TCP_KEEPIDLE, 30),
        (socket.TCP_KEEPINTVL, 10),
        (socket.TCP_KEEPCNT, 6),
    ):
        sock.setsockopt(socket.IPPROTO_TCP, option, seconds)
    # The same for one that vanished while it was sent something.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 90_000)
