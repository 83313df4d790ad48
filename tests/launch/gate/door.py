"""A gate in a thread of this process, before a server that says everything back."""

import contextlib
import pathlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

from launch.gate import keys
from launch.gate.gate import Gate
from launch.gate.relay import Relay
from launch.gate.tls import gate_context

SECONDS = 60.0  # bounds a hang
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # how gRPC begins


class Door:
    """The gate of the run whose keys are in a folder."""

    def __init__(self, folder: pathlib.Path, server: socket.socket, **gate_options: object):
        self.loop = Relay()
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = listener.getsockname()[1]
        context = gate_context(keys.read_key(folder / keys.GATE))
        self.gate = Gate(self.loop, listener, context, server.getsockname(), **gate_options)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.loop.run, args=(self._go_on,), daemon=True)
        self._thread.start()
        self._listener = listener

    def _go_on(self) -> bool:
        self.gate.tick()
        return not self._stop.is_set()

    def close(self) -> None:
        self._stop.set()
        self.loop.call(lambda: None)
        self._thread.join(SECONDS)
        self.loop.close()
        self._listener.close()

    def connect(self) -> socket.socket:
        """A connection without any TLS."""
        return socket.create_connection(("127.0.0.1", self.port), SECONDS)

    def enter(self, context: ssl.SSLContext, run_id: str) -> ssl.SSLSocket:
        """A connection as a tunnel makes it."""
        return context.wrap_socket(self.connect(), server_hostname=run_id)


@contextlib.contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[socket.socket]:
    """A server that handles each connection in a thread of its own; counts nothing."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def echo(connection: socket.socket) -> None:
    """Says everything back."""
    with connection, contextlib.suppress(OSError):
        while said := connection.recv(1 << 16):
            connection.sendall(said)


def receive(sock: socket.socket, size: int) -> bytes:
    """Exactly so many bytes, or fewer at the end."""
    received = bytearray()
    while len(received) < size and (more := sock.recv(size - len(received))):
        received += more
    return bytes(received)
