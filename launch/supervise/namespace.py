"""A network namespace of a run's own, made without any privilege.

Reverb listens on all interfaces; in here the only one is a loopback that nobody else has. An
unprivileged user may make such a namespace inside a user namespace, but only with a process that
has a single thread. So a small process does it, this file run as a script, and the namespace lives
on in open files of ours: the nodes of a run enter through them, between fork and exec, while their
supervisor stays where it is. Sockets belong to the namespace they were made in: a node that is
given a listener of the supervisor's has one foot in the network outside. A process that has threads
already enters by becoming another: the same script enters, and then becomes that one.

Standard library only, because the script knows no other.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_MADE, _MADE_WITH_USER = "net", "user net"
_SECONDS = 30.0  # bounds a hang


class NoNamespaceError(Exception):
    """This machine does not let us make one; the reason, and what decides it."""


class Namespace:
    """A namespace that lives for as long as this object, or a process in it, does."""

    def __init__(self, files: list[int]):
        self._files = files
        self._setns = ctypes.CDLL(None, use_errno=True).setns

    @property
    def files(self) -> Sequence[int]:
        """Open files that stand for it: a process that is given them can enter too."""
        return tuple(self._files)

    def enter(self) -> None:
        """Takes this process into the namespace; it must have a single thread, as after a fork."""
        for file in self._files:
            if self._setns(file, 0) != 0:
                raise _system_error()

    def execute(self, command: Sequence[str]) -> NoReturn:
        """Becomes this command, in the namespace; how many threads there were is no matter."""
        for file in self._files:
            os.set_inheritable(file, True)
        files = ",".join(map(str, self._files))
        os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, files, *command])

    def close(self) -> None:
        """Leaves it to the processes that are in it."""
        while self._files:
            os.close(self._files.pop())

    def __enter__(self) -> "Namespace":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def make_namespace() -> Namespace:
    """A new one, with its loopback up; raises NoNamespaceError where there can be none."""
    maker = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with maker:
        try:
            assert maker.stdout is not None
            answered, _, _ = select.select([maker.stdout], [], [], _SECONDS)
            said = maker.stdout.readline().strip() if answered else "no answer"
            if said not in (_MADE, _MADE_WITH_USER):
                raise NoNamespaceError(
                    f"{said or 'no answer'}; this machine does not let users make namespaces "
                    "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone or "
                    "kernel.apparmor_restrict_unprivileged_userns)"
                )
            # The user's first: only in there may we enter the other.
            paths = [f"/proc/{maker.pid}/ns/{kind}" for kind in said.split()]
            return Namespace([os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths])
        finally:
            maker.kill()


def _unshare() -> str:
    """Makes this process's namespace; says of which kinds it is."""
    user, group = os.geteuid(), os.getegid()
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    # Root keeps its rights over other users' files, which it would lose in a user namespace.
    if unshare(_CLONE_NEWNET) == 0:
        return _MADE
    if unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        raise _system_error()
    # The same user inside as outside: files keep their owner.
    own = pathlib.Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user} {user} 1")
    (own / "gid_map").write_text(f"{group} {group} 1")
    return _MADE_WITH_USER


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request)
        flags = struct.unpack("16sh14x", answer)[1] | _IFF_UP
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))


def _system_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def _keep_new() -> None:
    """Makes the namespace, and keeps it until this process is killed or left alone."""
    try:
        kinds = _unshare()
        _raise_loopback()
    except OSError as error:
        print(error.strerror, flush=True)
        return
    print(kinds, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.read()


def main(argv: list[str]) -> None:
    """The script's part: makes a namespace, or enters one and becomes a command there."""
    if not argv:
        _keep_new()
        return
    files, *command = argv
    with Namespace([int(file) for file in files.split(",")]) as namespace:
        namespace.enter()
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
