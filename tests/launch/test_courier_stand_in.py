"""The stand-in for Courier, where its binaries are of another Python; the real one elsewhere."""

import sys
import types

import launchpad as lp
import pytest

from launch import courier_stand_in
from launch.courier_stand_in import CourierUnavailableError

needs_the_stand_in = pytest.mark.skipif(
    not courier_stand_in.is_needed(), reason="the real Courier loads on this Python"
)


class Service:
    """What someone might want to serve."""

    def __init__(self, client: object = None):
        del client

    def answer(self) -> int:
        return 42


def test_the_stand_in_is_used_only_where_the_real_one_cannot_load():
    is_real = getattr(sys.modules["courier"], "__file__", None) is not None
    assert is_real != courier_stand_in.is_needed()
    assert courier_stand_in.is_needed() == (sys.version_info >= (3, 11))


@needs_the_stand_in
@pytest.mark.parametrize(
    "use",
    [
        lambda: lp.CourierClient("localhost:1"),
        lambda: lp.batched_handler(batch_size=2)(len),
        lambda: sys.modules["courier"].Server(),
        lambda: sys.modules["courier"].list_methods(None),
    ],
)
def test_whoever_opens_a_server_or_a_client_is_told_why_that_cannot_work(use):
    with pytest.raises(CourierUnavailableError, match=r"Python 3\.11.*binaries for Python 3\.10"):
        use()


@needs_the_stand_in
def test_a_courier_node_fails_when_it_runs():
    node = lp.CourierNode(Service)
    for address in node.addresses:
        address.bind(lp.SimpleLocalAddressBuilder())
    with pytest.raises(CourierUnavailableError):
        node.run()


def test_the_real_one_is_left_alone_once_it_is_loaded(monkeypatch):
    real = types.ModuleType("courier")
    monkeypatch.setitem(sys.modules, "courier", real)
    monkeypatch.setattr(courier_stand_in, "is_needed", lambda: True)
    courier_stand_in.install_where_needed()
    assert sys.modules["courier"] is real
