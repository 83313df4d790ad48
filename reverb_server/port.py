"""Whether a port is free. Plain sockets: checking a config needs no Reverb."""

import errno
import socket

_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


class PortInUseError(Exception):
    """The port cannot be bound; mostly someone listens on it already."""


def check_port_free(port: int) -> None:
    """Raises if the port cannot be bound; Reverb itself would share it silently."""
    try:
        try:
            # Covers IPv4 too: the socket is of both kinds, as Reverb's own.
            _bind(socket.AF_INET6, "::", port)
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
            _bind(socket.AF_INET, "0.0.0.0", port)
    except OSError as error:
        state = "is in use" if error.errno == errno.EADDRINUSE else "cannot be used"
        raise PortInUseError(
            f"port {port} {state} ({error.strerror}); choose another with --port, or 0 for any"
        ) from None


def _bind(family: socket.AddressFamily, host: str, port: int) -> None:
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
