"""A network namespace of a run's own."""

import os
import socket
import subprocess
import sys

import pytest

from launch.supervise import namespace as namespace_lib
from launch.supervise.namespace import NoNamespaceError, make_namespace
from launch.supervise.node_process import die_with_parent

LISTEN = """
import ctypes, os, socket
names = [name for _, name in socket.if_nameindex()]
signal = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(signal))  # PR_GET_PDEATHSIG
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 5).close()
print(server.getsockname()[1], signal.value, os.getuid(), *names, flush=True)
input()
"""


@pytest.fixture
def namespace():
    try:
        made = make_namespace()
    except NoNamespaceError as error:
        pytest.skip(f"no namespaces here: {error}")
    with made:
        yield made


def start_in(namespace) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-S", "-c", LISTEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent(os.getpid(), namespace.enter),
    )


def test_a_process_in_it_has_a_loopback_that_nobody_outside_reaches(namespace):
    with start_in(namespace) as child:
        port, death_signal, user, *names = child.stdout.readline().split()
        # Kernels add tunnels of their own, which lead nowhere while they are down.
        assert "lo" in names and not any(name.startswith(("eth", "en")) for name in names)
        assert int(user) == os.getuid()
        assert int(death_signal) == 9  # it dies with its parent, wherever it is
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)), 5)
        child.communicate("\n")


def test_processes_that_enter_it_meet_there(namespace):
    with start_in(namespace) as child:
        port = child.stdout.readline().split()[0]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        other = subprocess.run(
            [sys.executable, "-S", "-c", connect], preexec_fn=namespace.enter, check=False
        )
        assert other.returncode == 0
        child.communicate("\n")


def test_a_listener_of_outside_works_inside(namespace):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code = f"import socket; socket.socket(fileno={listener.fileno()}).accept()[0].send(b'in')"
        child = subprocess.Popen(
            [sys.executable, "-S", "-c", code],
            preexec_fn=namespace.enter,
            pass_fds=[listener.fileno()],
        )
        with socket.create_connection(listener.getsockname(), 30) as outside:
            assert outside.recv(2) == b"in"
        assert child.wait(30) == 0


def test_a_machine_that_refuses_is_quoted(monkeypatch, tmp_path):
    script = tmp_path / "refusing.py"
    script.write_text("print('Operation not permitted')")
    monkeypatch.setattr(namespace_lib, "__file__", str(script))
    with pytest.raises(NoNamespaceError, match=r"Operation not permitted; .*max_user_namespaces"):
        make_namespace()
