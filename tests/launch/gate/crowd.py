"""A crowd at a gate: a Reverb client without a key, very many connections, and a host with a key.

`python -m tests.launch.gate.crowd ADDRESS_FILE KEY_FILE NUMBER` says "there" once all of them are.
The host with a key then takes whatever it gets, until the process is stopped by a signal: from then
on it reads no more, and all connections stay.
"""

import contextlib
import pathlib
import random
import resource
import socket
import sys
import threading

import reverb

from launch.gate.tunnel import OpenTunnel
from reverb_server import tables
from reverb_server.client import SERVER_AWAY

_SECONDS = 60


def answers(address: str) -> bool:
    """Whether a Reverb server answers there, to someone without a key."""
    try:
        reverb.Client(address).server_info(timeout=3)
    except SERVER_AWAY:
        return False
    return True


def _crowd(address: str, number: int) -> contextlib.ExitStack:
    """Connections that say nothing or nonsense."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, _, port = address.rpartition(":")
    held, noise = contextlib.ExitStack(), random.Random(number)
    for i in range(number):
        one = held.enter_context(socket.create_connection((host, int(port)), _SECONDS))
        if i % 100 == 0:
            with contextlib.suppress(OSError):  # the gate may well hang up
                one.sendall(noise.randbytes(1000))
    return held


def _read_on(address: str, begun: threading.Event) -> None:
    for _ in reverb.Client(address).sample(tables.PARAMS, 10**9, emit_timesteps=False):
        begun.set()


def main(argv: list[str]) -> None:
    """Entry point of the process."""
    address_file, key_file = map(pathlib.Path, argv[1:3])
    address = address_file.read_text().strip()
    if answers(address):
        sys.exit("the server answers to someone without a key")
    begun = threading.Event()
    with _crowd(address, int(argv[3])), OpenTunnel(key_file, address_file) as tunnel:
        threading.Thread(target=_read_on, args=(tunnel.address, begun), daemon=True).start()
        if not begun.wait(_SECONDS):
            sys.exit(f"the server does not answer to someone with a key: {tunnel.problem}")
        print("there", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv)
