"""A run in a network namespace of its own."""

import pathlib
import subprocess
import sys

import pytest

from launch.engines import isolate
from launch.invocation import vantage_command

ROOT = pathlib.Path(__file__).parents[3]

PROBE = """
import socket
from launch.engines import isolate
try:
    isolate._unshare()
except OSError as error:
    print("refused", error)
    raise SystemExit
isolate._raise_loopback()
with socket.socket() as server:
    server.bind(("127.0.0.1", 0))
    server.listen()
    socket.create_connection(server.getsockname(), 5).close()
print([name for _, name in socket.if_nameindex()])
"""


def test_an_isolated_process_has_a_loopback_and_nothing_else():
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    if done.stdout.startswith("refused"):
        pytest.skip(f"no user namespaces here: {done.stdout}")
    interfaces = set(done.stdout.split("'")[1::2])
    # Kernels add tunnels of their own, which lead nowhere while they are down.
    assert "lo" in interfaces and not any(name.startswith(("eth", "en")) for name in interfaces)


def test_an_isolated_command_is_the_same_command(tmp_path):
    flags = ("--isolate", "--game", "pongg", "--run-dir", str(tmp_path / "run"))
    done = subprocess.run(
        vantage_command("train", *flags),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert "did you mean pong" in done.stderr or "--isolate" in done.stderr


def test_a_process_started_isolated_is_not_isolated_again(monkeypatch):
    assert not isolate.is_isolated()
    monkeypatch.setenv("VANTAGE_ISOLATED", "1")
    assert isolate.is_isolated()
