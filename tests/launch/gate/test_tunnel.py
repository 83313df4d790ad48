"""An actor host's way to replay: through the gate of its own run, wherever that is."""

import contextlib
import os
import pathlib
import socket
import stat
import threading
import time

import pytest

from launch.gate import keys
from launch.gate.farewell import tell_over
from launch.gate.tunnel import OpenTunnel, address_of, unix_listener
from tests.launch.gate.door import SECONDS, Door, echo, receive, serving


class Way:
    """What a tunnel needs to know: a key file and an address file."""

    def __init__(self, folder: pathlib.Path, run_id: str = "c0ffee"):
        keys.make_keys(folder / "keys", run_id, 1)
        self.keys, self.address_file = folder / "keys", folder / "address"

    def tunnel(self, **options: float) -> OpenTunnel:
        return OpenTunnel(self.keys / keys.actor_key(0), self.address_file, **options)

    def lead_to(self, door: Door) -> None:
        self.address_file.write_text(f"localhost:{door.port}")


@pytest.fixture
def way(tmp_path):
    return Way(tmp_path)


@contextlib.contextmanager
def door_of(folder, answer=echo):
    with serving(answer) as server:
        door = Door(folder, server)
        yield door
        door.close()


def connect(tunnel: OpenTunnel) -> socket.socket:
    near = socket.socket(socket.AF_UNIX)
    near.settimeout(SECONDS)
    near.connect(tunnel.address.removeprefix("unix:"))
    return near


def is_served(tunnel: OpenTunnel) -> bool:
    with connect(tunnel) as near:
        near.sendall(b"hello")
        return receive(near, 5) == b"hello"


def ends(near: socket.socket) -> bool:
    """Whether a connection ends without a word."""
    try:
        return near.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_host_reaches_replay_through_tunnel_and_gate(way):
    with door_of(way.keys) as door, way.tunnel() as tunnel:
        way.lead_to(door)
        assert is_served(tunnel)
        assert tunnel.problem is None


def test_a_tunnel_leaves_no_file_open(way, eventually):
    def open_files():
        return len(os.listdir("/proc/self/fd"))

    before = open_files()
    with door_of(way.keys) as door:
        way.lead_to(door)
        inside = open_files()
        for _ in range(3):
            with way.tunnel() as tunnel:
                assert is_served(tunnel)
        # Gate and server hear of an end a little later; three tunnels that leak leave several.
        eventually(lambda: open_files() <= inside + 1)
    eventually(lambda: open_files() <= before + 1)


def test_nobody_else_can_enter_the_folder_of_the_socket(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("long" * 30)))
    os.mkdir(tmp_path / ("long" * 30))
    with unix_listener() as listener:  # a path that the kernel would not take is not used
        path = pathlib.Path(address_of(listener).removeprefix("unix:"))
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


def another_run(way, tmp_path):
    other = tmp_path / "other"
    keys.make_keys(other, "decade", 1)
    return other


def same_name(way, tmp_path):
    other = tmp_path / "other"
    keys.make_keys(other, "c0ffee", 1)
    return other


@pytest.mark.parametrize("whose", [another_run, same_name])
def test_a_gate_that_is_not_the_runs_hears_nothing_of_the_host(way, tmp_path, whose):
    heard = []

    def listen(connection):
        heard.append(connection.recv(100))

    with door_of(whose(way, tmp_path), listen) as door, way.tunnel() as tunnel:
        way.lead_to(door)
        with connect(tunnel) as near:
            near.sendall(b"secret")
            assert ends(near)
        assert "is not this run's" in tunnel.problem
    assert not heard


def test_a_host_whose_key_the_gate_refuses_says_so(way, tmp_path):
    with door_of(way.keys) as door, way.tunnel() as tunnel:
        way.lead_to(door)
        # The gate's own key is of this run, and no host's.
        (way.keys / keys.actor_key(0)).write_text((way.keys / keys.GATE).read_text())
        with connect(tunnel) as near:
            near.sendall(b"hello")
            assert ends(near)
        assert tunnel.problem.startswith("the gate refused this host's key")


def test_a_tunnel_that_hears_that_the_run_is_over_says_so_once_and_for_all(way):
    heard = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        way.address_file.write_text(f"localhost:{listener.getsockname()[1]}")
        key = keys.read_key(way.keys / keys.GATE)
        with OpenTunnel(
            way.keys / keys.actor_key(0), way.address_file, hold_seconds=SECONDS, on_over=heard.set
        ) as tunnel:
            with connect(tunnel) as near:
                assert tell_over(listener, key, ["actor-0"], SECONDS) == []
                assert ends(near)
            assert heard.is_set()


def test_without_a_gate_connections_end_and_the_reason_is_known(way):
    with way.tunnel() as tunnel:
        with connect(tunnel) as near:
            assert ends(near)
        assert tunnel.problem == f"no address in {way.address_file}"
        with socket.create_server(("127.0.0.1", 0)) as closed:
            way.address_file.write_text(f"localhost:{closed.getsockname()[1]}")
        with connect(tunnel) as near:
            assert ends(near)
        assert "Connection refused" in tunnel.problem


def test_a_connection_is_held_until_a_gate_that_is_away_comes_back(way):
    with way.tunnel(hold_seconds=SECONDS) as tunnel, connect(tunnel) as near:
        while tunnel.problem is None:
            time.sleep(0.01)
        with door_of(way.keys) as door:
            way.lead_to(door)
            near.sendall(b"hello")
            assert receive(near, 5) == b"hello"


def test_a_gate_that_came_back_elsewhere_with_new_keys_is_found(way):
    with way.tunnel() as tunnel:
        with door_of(way.keys) as door:
            way.lead_to(door)
            assert is_served(tunnel)
        keys.make_keys(way.keys, "decade", 1)
        with door_of(way.keys) as door:
            way.lead_to(door)
            assert is_served(tunnel)
