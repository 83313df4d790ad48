"""Who is let through the gate, who is not, and what those who are not can do to the others."""

import contextlib
import datetime
import itertools
import resource
import socket
import ssl
import struct
import threading

import pytest

from launch.gate import admission, keys
from launch.gate.tls import tunnel_context
from tests.launch.gate.door import HTTP2, SECONDS, Door, echo, receive, serving


@pytest.fixture
def folder(tmp_path):
    """The keys of a run of one actor host."""
    keys.make_keys(tmp_path / "keys", "c0ffee", 1)
    return tmp_path / "keys"


@pytest.fixture
def door(folder):
    with serving(echo) as server:
        door = Door(folder, server)
        yield door
        door.close()


def own_context(folder) -> ssl.SSLContext:
    return tunnel_context(keys.read_key(folder / keys.actor_key(0)))


def foreign_context(path, folder) -> ssl.SSLContext:
    """Shows a key of whatever kind, and takes the gate's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if path is not None:
        context.load_cert_chain(path)
    context.load_verify_locations(cadata=keys.read_key(folder / keys.GATE).authority)
    return context


def is_served(door: Door, folder) -> bool:
    with door.enter(own_context(folder), "c0ffee") as host:
        host.sendall(b"hello")
        return receive(host, 5) == b"hello"


def what_comes_back(door: Door, context: ssl.SSLContext) -> bytes:
    """What a connection with this key hears of replay."""
    try:
        with door.enter(context, "c0ffee") as stranger:
            stranger.sendall(HTTP2)
            return receive(stranger, len(HTTP2))
    except (ssl.SSLError, ConnectionError):
        return b""


def test_a_host_with_a_key_hears_what_replay_says_however_much_it_is(door, folder):
    sent = bytes(range(256)) * 40_000  # far more than any buffer on the way
    with door.enter(own_context(folder), "c0ffee") as host:
        received = []
        # TLS of Python cannot be read and written by two threads at once: small pieces in turn.
        for start in range(0, len(sent), 1 << 16):
            host.sendall(sent[start : start + (1 << 16)])
            received.append(receive(host, len(sent[start : start + (1 << 16)])))
    assert b"".join(received) == sent


def test_what_is_spoken_is_tls_1_3(door, folder):
    with door.enter(own_context(folder), "c0ffee") as host:
        assert host.version() == "TLSv1.3"
    old = own_context(folder)
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert what_comes_back(door, old) == b""


def expired(folder, monkeypatch):
    long_ago = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=100)
    authority = keys._read_authority(folder / "authority.pem")
    with monkeypatch.context() as earlier:
        earlier.setattr(keys, "_now", lambda: long_ago)
        (folder / keys.actor_key(0)).unlink()
        keys._issue(authority, folder / keys.actor_key(0), keys.ExtendedKeyUsageOID.CLIENT_AUTH)
    return folder / keys.actor_key(0)


def of_another_run(folder, monkeypatch):
    keys.make_keys(folder.parent / "other", "decade", 1)
    return folder.parent / "other" / keys.actor_key(0)


def of_the_right_name(folder, monkeypatch):
    keys.make_keys(folder.parent / "other", "c0ffee", 1)
    return folder.parent / "other" / keys.actor_key(0)


def of_the_gate(folder, monkeypatch):
    return folder / keys.GATE


def none(folder, monkeypatch):
    return None


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (expired, "not of this run, or not of today: certificate has expired"),
        (of_another_run, "not of this run, or not of today: self"),
        (of_the_right_name, "not of this run, or not of today: self"),
        (of_the_gate, "not of this run, or not of today: unsu"),  # its purpose is another
        (none, "PEER_DID_NOT_RETURN_A_CERTIFICATE"),
    ],
)
def test_a_stranger_hears_nothing_of_replay(folder, monkeypatch, caplog, key, reason):
    path = key(folder, monkeypatch)
    with serving(echo) as server:
        door = Door(folder, server)
        assert what_comes_back(door, foreign_context(path, folder)) == b""
        assert what_comes_back(door, foreign_context(path, folder)) == b""
        door.close()
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("refused 127.0.0.1: ")
    assert reason in line


@pytest.mark.parametrize("words", [HTTP2, b"\0" * 1000, b"\x16\x03\x01\0\x05" + b"x" * 5000])
def test_who_speaks_something_else_is_sent_away(door, folder, words):
    heard = bytearray()
    # A connection may be closed over words that nobody read.
    with door.connect() as stranger, contextlib.suppress(ConnectionError):
        stranger.sendall(words)
        while more := stranger.recv(1000):
            heard += more
    assert len(heard) < 20  # at most an alert of TLS
    assert is_served(door, folder)


def test_who_takes_its_time_is_sent_away(folder, caplog):
    times = itertools.count(step=admission._HANDSHAKE_SECONDS / 3)
    with serving(echo) as server:
        door = Door(folder, server, clock=lambda: next(times))
        with door.connect() as slow:
            slow.sendall(b"\x16")  # the first byte of a handshake
            assert slow.recv(1) == b""
        door.close()
    assert "no key within" in caplog.text


def test_ten_thousand_connections_leave_the_gate_to_those_with_a_key(door, folder, caplog):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = min(10_000, most[1] // 2 - 1000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    try:
        with contextlib.ExitStack() as crowd:
            for i in range(number):
                crowd.enter_context(door.connect())
                if i % 1000 == 0:
                    assert len(door.gate._waiting) <= admission._WAITING_PER_ADDRESS
                    assert is_served(door, folder)
            assert is_served(door, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
    assert caplog.text.count("refused") == 1 and "without a key" in caplog.text


def test_no_more_hosts_are_let_in_than_there_is_room_for(folder, caplog):
    with serving(echo) as server:
        door = Door(folder, server, max_pairs=2)
        inside = [door.enter(own_context(folder), "c0ffee") for _ in range(2)]
        for host in inside:
            host.sendall(b"x")
            assert receive(host, 1) == b"x"
        assert what_comes_back(door, own_context(folder)) == b""
        inside.pop().close()
        while door.loop.num_pairs > 1:
            pass
        assert is_served(door, folder)
        door.close()
    assert "open already" in caplog.text


def test_a_host_that_stops_reading_fills_no_memory_and_holds_up_nobody(folder):
    sent, full = bytearray(), threading.Event()

    def pour(connection):
        """Sends for as long as someone takes it, or a little more than a piece."""
        if connection.recv(1) == b"e":
            connection.sendall(b"e" * (1 << 19))
            return
        connection.settimeout(1.0)
        with contextlib.suppress(TimeoutError):
            while True:
                piece = bytes([len(sent) % 251]) * (1 << 16)
                sent.extend(piece[: connection.send(piece)])
        full.set()

    with serving(pour) as server:
        door = Door(folder, server)
        with door.enter(own_context(folder), "c0ffee") as deaf:
            deaf.sendall(b"p")
            assert full.wait(SECONDS)
            # What the kernel holds for three sockets, and one piece of ours.
            assert len(sent) < 64 << 20
            with door.enter(own_context(folder), "c0ffee") as other:
                other.sendall(b"e")
                assert receive(other, 1 << 19) == b"e" * (1 << 19)
            assert receive(deaf, len(sent)) == sent  # once it reads, it gets all of it
        door.close()


def test_who_leaves_at_once_leaves_the_gate_in_order(door, folder):
    for _ in range(200):
        with door.connect() as stranger:
            # Closing sends a reset.
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stranger.sendall(b"\x16")
    assert is_served(door, folder)


def test_refusals_are_said_once_for_an_address_and_of_a_bounded_number(caplog):
    refusals = admission.Refusals()
    for number in range(5 * admission._ADDRESSES_SAID):
        refusals.say(f"address {number % (2 * admission._ADDRESSES_SAID)}", "no key")
    assert len(caplog.records) == admission._ADDRESSES_SAID + 1
    assert "more are not listed" in caplog.text
