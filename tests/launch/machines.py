"""Machines of a test's own: network namespaces on a bridge that nothing else is connected to.

They need no privilege where users may make namespaces, and vanish with the test, however it ends.
All of them see this machine's files, so any folder is a shared one.
"""

import contextlib
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

_NETWORK = "10.84.0"
_SECONDS = 30.0


class NoMachinesError(Exception):
    """They cannot be made here."""


class Machine(NamedTuple):
    """One that has an address on the bridge."""

    address: str
    pid: int  # of the process that keeps it

    def command(self, *command: str) -> list[str]:
        """What runs a command there; it is killed when whoever started it is gone."""
        # Not by us between fork and exec: the kernel forgets it when a namespace is entered.
        return [*_inside(self.pid), "setpriv", "--pdeathsig=KILL", *command]


@contextlib.contextmanager
def make_machines(number: int) -> Iterator[list[Machine]]:
    """So many of them, connected."""
    with contextlib.ExitStack() as kept:
        try:
            hub = _keep(kept, "unshare", "--user", "--map-root-user", "--net")
            _call(hub, "ip", "link", "add", "bridge", "type", "bridge")
            _call(hub, "ip", "link", "set", "bridge", "up")
            machines = [_connect(kept, hub, index) for index in range(number)]
        except (OSError, subprocess.SubprocessError) as error:
            raise NoMachinesError(str(error)) from None
        yield machines


def _connect(kept: contextlib.ExitStack, hub: int, index: int) -> Machine:
    machine = Machine(f"{_NETWORK}.{index + 1}", _keep(kept, *_inside(hub), "unshare", "--net"))
    peer = ("peer", "name", "eth0", "netns", str(machine.pid))
    _call(hub, "ip", "link", "add", f"port{index}", "type", "veth", *peer)
    _call(hub, "ip", "link", "set", f"port{index}", "master", "bridge", "up")
    _call(machine.pid, "ip", "addr", "add", f"{machine.address}/24", "dev", "eth0")
    for link in ("lo", "eth0"):
        _call(machine.pid, "ip", "link", "set", link, "up")
    return machine


def _inside(pid: int) -> list[str]:
    return ["nsenter", f"--target={pid}", "--user", "--net", "--preserve-credentials"]


def _keep(kept: contextlib.ExitStack, *command: str) -> int:
    """A process in the namespaces that the command makes, until its input ends."""
    keeper = subprocess.Popen(
        [*command, "sh", "-c", "echo there; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    kept.enter_context(keeper)
    kept.callback(keeper.kill)
    assert keeper.stdout is not None and keeper.stderr is not None
    if not keeper.stdout.readline():
        raise OSError(keeper.stderr.read().strip())
    return keeper.pid


def _call(pid: int, *command: str) -> None:
    subprocess.run(
        [*_inside(pid), *command], check=True, capture_output=True, text=True, timeout=_SECONDS
    )
