"""Whether a port is free. Plain sockets: checking a config needs no Reverb."""

import socket


class PortInUseError(Exception):
    """Someone listens on the port already."""


def check_port_free(port: int) -> None:
    """Raises if the port cannot be bound; Reverb itself would share it silently."""
    with socket.socket(socket.AF_INET6) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("::", port))
        except OSError as error:
            raise PortInUseError(
                f"port {port} is in use ({error.strerror}); choose another with --port, or 0 for any"
            ) from None
