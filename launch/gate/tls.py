"""TLS as both ends of the gate speak it: 1.3 alone, and each shows a key of the run's authority.

In the handshake the gate also says (by ALPN) whether it leads to replay, or the run is over.
"""

import ssl

from launch.errors import InputError
from launch.gate.keys import HostKey

RELAY, OVER = "vantage-relay", "vantage-over"


def gate_context(key: HostKey, says: str = RELAY) -> ssl.SSLContext:
    """For the end that listens."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, key)
    context.set_alpn_protocols([says])
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # everyone shows the key each time
    return context


def tunnel_context(key: HostKey) -> ssl.SSLContext:
    """For the end that connects; the name to ask for is the run's id."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, key)
    context.set_alpn_protocols([RELAY, OVER])
    assert context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED
    return context


def _context(protocol: int, key: HostKey) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(key.path)
        context.load_verify_locations(cadata=key.authority)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"key '{key.path}' cannot be used: {error}; resume the run") from None
    return context
