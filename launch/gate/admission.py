"""Who may wait at the gate, and how many: bounds on connections that have not shown a key yet.

Whoever has a key is in within milliseconds, so it is the oldest that must give way to a new one:
of its own address first, of all addresses when there are too many of those.
"""

import collections
import logging
import ssl
from collections.abc import Callable

_HANDSHAKE_SECONDS = 10.0
_WAITING, _WAITING_PER_ADDRESS = 512, 64
_ADDRESSES_SAID = 1000


class Waiting:
    """The connections that have not shown a key yet, oldest first."""

    def __init__(
        self,
        turn_away: Callable[[ssl.SSLSocket, str, str], None],
        clock: Callable[[], float],
    ):
        """`turn_away` gets the socket, its address and the reason."""
        self._turn_away, self._clock = turn_away, clock
        self._came: dict[ssl.SSLSocket, tuple[str, float]] = {}
        self._by_address: dict[str, dict[ssl.SSLSocket, None]] = collections.defaultdict(dict)

    def __len__(self) -> int:
        return len(self._came)

    def add(self, sock: ssl.SSLSocket, address: str) -> None:
        """Lets one more wait, for whom others may have to go."""
        mine = self._by_address[address]
        if len(mine) >= _WAITING_PER_ADDRESS:
            self._drop(next(iter(mine)), "too many connections at once without a key")
        elif len(self._came) >= _WAITING:
            self._drop(next(iter(self._came)), "too many connections at once without a key")
        self._came[sock] = (address, self._clock() + _HANDSHAKE_SECONDS)
        self._by_address[address][sock] = None

    def remove(self, sock: ssl.SSLSocket) -> str:
        """This one need not wait any more; returns its address."""
        address, _ = self._came.pop(sock)
        mine = self._by_address[address]
        del mine[sock]
        if not mine:
            del self._by_address[address]
        return address

    def drop_late(self) -> None:
        """Turns away those that have had their time."""
        now = self._clock()
        while self._came:
            sock, (_, deadline) = next(iter(self._came.items()))
            if now < deadline:
                return
            self._drop(sock, f"no key within {_HANDSHAKE_SECONDS:.0f} s")

    def _drop(self, sock: ssl.SSLSocket, reason: str) -> None:
        self._turn_away(sock, self.remove(sock), reason)


class Refusals:
    """Says who was refused, once for each address, and of no more addresses than fit a log."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, address: str, reason: str) -> None:
        """Writes a line, if there was none for this address."""
        if address in self._said or len(self._said) > _ADDRESSES_SAID:
            return
        self._said.add(address)
        if len(self._said) > _ADDRESSES_SAID:
            logging.warning("refused %d addresses; more are not listed", _ADDRESSES_SAID)
            return
        logging.warning("refused %s: %s", address, reason)
