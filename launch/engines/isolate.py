"""`--isolate`: the whole run in a network namespace of its own, without any privilege.

Reverb listens on all interfaces; here the only interface is a loopback that nobody else has. An
unprivileged user may make such a namespace inside a user namespace. A process can enter one only
while it has a single thread, and ours has more by the time flags are read (NumPy's), so a fresh
interpreter goes first: it enters, raises the loopback and becomes the command.

Standard library only: this module runs before anything else is imported.
"""

import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import sys
from collections.abc import Sequence
from typing import NoReturn

from launch.invocation import vantage_command

_VARIABLE = "VANTAGE_ISOLATED"
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_REFUSED = 2  # the exit code of bad input


def is_isolated() -> bool:
    """Whether this process was started by `restart_isolated`."""
    return _VARIABLE in os.environ


def restart_isolated(args: Sequence[str]) -> NoReturn:
    """Becomes `vantage ARGS` in a network namespace of its own."""
    code = "from launch.engines.isolate import enter; enter()"
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-c", code, *args])


def enter() -> NoReturn:
    """The fresh interpreter's part: enters the namespace, then becomes the command."""
    try:
        _unshare()
        _raise_loopback()
    except OSError as error:
        print(
            f"vantage: error: --isolate: {error.strerror}; this machine does not let users make "
            "namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone or "
            "kernel.apparmor_restrict_unprivileged_userns); drop the flag and use a firewall",
            file=sys.stderr,
        )
        sys.exit(_REFUSED)
    os.environ[_VARIABLE] = "1"
    os.execv(sys.executable, vantage_command(*sys.argv[1:]))


def _unshare() -> None:
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # The same user inside as outside: files keep their owner.
    own = pathlib.Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{user} {user} 1")
    (own / "gid_map").write_text(f"{group} {group} 1")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request)
        flags = struct.unpack("16sh14x", answer)[1] | _IFF_UP
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))
