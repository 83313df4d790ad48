"""The gate's last words: hosts that still ask are told that the run is over.

A host that shares no file system with the learner's sees no `stop` there. Whoever comes with a key
of the run hears it in the TLS handshake, from the gate's own key, and nothing else is served.
"""

import socket
import ssl
import time
from collections.abc import Collection

from cryptography import x509
from cryptography.x509.oid import NameOID

from launch.gate.keys import HostKey
from launch.gate.tls import OVER, gate_context

# One that does not come forward: others wait behind it.
_HANDSHAKE_SECONDS = 5.0


def tell_over(
    listener: socket.socket, key: HostKey, hosts: Collection[str], seconds: float
) -> list[str]:
    """Says so until all these hosts, by the names in their keys, have heard; returns who has not.

    Waits for them for `seconds` at most.
    """
    context = gate_context(key, OVER)
    left = set(hosts)
    deadline = time.monotonic() + seconds
    while left and (remaining := deadline - time.monotonic()) > 0:
        listener.settimeout(remaining)
        try:
            connection, _ = listener.accept()
        except ConnectionAbortedError:
            continue  # it has left already
        except OSError:  # time is up, or this host is out of files
            break
        with connection:
            left.discard(_tell(context, connection, min(_HANDSHAKE_SECONDS, remaining)))
    return sorted(left)


def _tell(context: ssl.SSLContext, connection: socket.socket, seconds: float) -> str:
    """Whom this was told; nobody's name if it has no key of the run."""
    connection.settimeout(seconds)
    try:
        with context.wrap_socket(connection, server_side=True) as secure:
            shown = secure.getpeercert(binary_form=True)
    except OSError:
        return ""
    assert shown is not None  # the handshake asks for one
    subject = x509.load_der_x509_certificate(shown).subject
    return str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
