"""The end of a run, told to hosts that see no file of it."""

import socket
import threading

import pytest

from launch.gate import keys
from launch.gate.farewell import tell_over
from launch.gate.tunnel import RunOverError, connect
from tests.launch.gate.door import SECONDS


class Farewell:
    """The learner's host, which says in a thread that its run is over."""

    def __init__(self, folder, hosts, seconds=SECONDS):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.late = None
        key = keys.read_key(folder / keys.GATE)

        def tell():
            self.late = tell_over(self.listener, key, hosts, seconds)

        self._thread = threading.Thread(target=tell, daemon=True)
        self._thread.start()

    def join(self):
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        self.listener.close()
        return self.late

    def address_file(self, folder):
        path = folder / "address"
        path.write_text(f"localhost:{self.listener.getsockname()[1]}")
        return path


@pytest.fixture
def folder(tmp_path):
    keys.make_keys(tmp_path / "keys", "c0ffee", 2)
    return tmp_path


def test_all_hosts_hear_that_the_run_is_over_and_then_nobody_waits(folder):
    farewell = Farewell(folder / "keys", ["actor-0", "actor-1"])
    address = farewell.address_file(folder)
    for index in (0, 1):
        with pytest.raises(RunOverError, match="says that the run is over"):
            connect(folder / "keys" / keys.actor_key(index), address)
    assert farewell.join() == []


def test_a_stranger_does_not_stand_for_a_host(folder, tmp_path):
    keys.make_keys(tmp_path / "other", "c0ffee", 1)  # the right names, another authority
    farewell = Farewell(folder / "keys", ["actor-0"])
    address = farewell.address_file(folder)
    with socket.create_connection(farewell.listener.getsockname(), SECONDS) as noise:
        noise.sendall(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(Exception, match="is not this run's"):
        connect(tmp_path / "other" / keys.actor_key(0), address)
    with pytest.raises(RunOverError):
        connect(folder / "keys" / keys.actor_key(0), address)
    assert farewell.join() == []


def test_a_host_that_does_not_ask_is_not_waited_for_for_ever(folder):
    farewell = Farewell(folder / "keys", ["actor-0", "actor-1"], seconds=0.2)
    assert farewell.join() == ["actor-0", "actor-1"]
