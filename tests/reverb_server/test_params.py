"""Parameters from the learner to the actors: newest only, never back, never silently old."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import reverb

from reverb_server import params, tables
from reverb_server.params import ParamsPublisher, ParamsPuller, Snapshot, StaleParamsError
from reverb_server.params_check import Counters, ParamsLimits

MakeServer = Callable[..., reverb.Server]
Connect = Callable[[reverb.Server], reverb.Client]
Eventually = Callable[..., Any]


LIMITS = ParamsLimits(3, Counters(version=10**9, steps=10**12))


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def follows(puller: ParamsPuller, version: int) -> bool:
    """Whether a puller, stale or not, has that version."""
    try:
        return newest_of(puller).params.version == version
    except StaleParamsError:
        return False


@pytest.fixture
def make_puller() -> Iterator[Callable[..., ParamsPuller]]:
    pullers = []

    def make(client: reverb.Client, **options: Any) -> ParamsPuller:
        pullers.append(ParamsPuller(client, limits=LIMITS, poll_seconds=0.001, **options))
        return pullers[-1]

    yield make
    for puller in pullers:
        puller.close()


def publish(client: reverb.Client, version: int, **options: Any) -> None:
    """Publishes one version and waits until the server has it."""
    values = options.pop("values", np.full(3, version, np.float32))
    publisher = ParamsPublisher(client)
    options = {"steps": 10 * version, "finished": False} | options
    publisher.publish(lambda: values, version=version, **options)
    publisher.close(timeout_seconds=60.0)


def first_of(puller: ParamsPuller) -> Snapshot:
    snapshot = puller.wait_first(60.0)
    assert snapshot is not None
    return snapshot


def newest_of(puller: ParamsPuller) -> Snapshot:
    snapshot = puller.get()
    assert snapshot is not None
    return snapshot


def inserts_of(client: reverb.Client) -> int:
    info = client.server_info(30)[tables.PARAMS]
    return info.rate_limiter_info.insert_stats.completed


def test_what_is_published_is_what_is_pulled(
    make_server: MakeServer, connect: Connect, make_puller: Callable[..., ParamsPuller]
) -> None:
    client = connect(make_server())
    puller = make_puller(client)
    assert puller.get() is None
    values = np.array([1.5, -2.25, 1e-30], np.float32)
    publish(client, 7, values=values, steps=123_456_789_012, finished=True)

    snapshot = first_of(puller)

    assert snapshot.params.version == 7
    assert snapshot.params.steps == 123_456_789_012
    assert snapshot.params.finished is True
    assert snapshot.params.values.dtype == np.float32
    np.testing.assert_array_equal(snapshot.params.values, values)


def test_a_newer_version_replaces_the_older_and_the_table_holds_one(
    make_server: MakeServer,
    connect: Connect,
    make_puller: Callable[..., ParamsPuller],
    eventually: Eventually,
) -> None:
    client = connect(make_server())
    puller = make_puller(client)
    publish(client, 1)
    assert first_of(puller).params.version == 1
    publish(client, 2)

    eventually(lambda: newest_of(puller).params.version == 2)

    np.testing.assert_array_equal(newest_of(puller).params.values, np.full(3, 2, np.float32))
    assert client.server_info(5)[tables.PARAMS].current_size == 1


def test_a_puller_never_goes_back_to_an_older_version(
    make_server: MakeServer,
    connect: Connect,
    make_puller: Callable[..., ParamsPuller],
    eventually: Eventually,
) -> None:
    client = connect(make_server())
    puller = make_puller(client)
    publish(client, 5)
    assert first_of(puller).params.version == 5
    seen: list[int] = []
    for version in (3, 4, 6):
        publish(client, version)

    def arrived() -> bool:
        seen.append(newest_of(puller).params.version)
        return seen[-1] == 6

    eventually(arrived)
    assert set(seen) <= {5, 6}


def test_a_learner_that_fell_back_counts_as_alive_but_its_versions_as_old(
    make_server: MakeServer,
    connect: Connect,
    make_puller: Callable[..., ParamsPuller],
    eventually: Eventually,
) -> None:
    client, clock = connect(make_server()), Clock()
    puller = make_puller(client, stale_seconds=100.0, clock=clock)
    publish(client, 5)
    assert first_of(puller).age_seconds == 0.0
    clock.now += 90.0
    publish(client, 4)
    clock_when_heard = clock.now

    def heard() -> bool:
        clock.now = clock_when_heard + 20.0  # 110 s since version 5
        try:
            return puller.get() is not None
        except StaleParamsError:
            clock.now = clock_when_heard
            return False

    eventually(heard)
    assert newest_of(puller).params.version == 5
    assert newest_of(puller).age_seconds == 110.0


def test_old_parameters_raise_with_their_age_and_the_limit(
    make_server: MakeServer, connect: Connect, make_puller: Callable[..., ParamsPuller]
) -> None:
    client, clock = connect(make_server()), Clock()
    puller = make_puller(client, stale_seconds=300.0, clock=clock)
    publish(client, 1)
    first_of(puller)
    clock.now += 300.0
    assert newest_of(puller).age_seconds == 300.0
    clock.now += 17.0
    with pytest.raises(StaleParamsError, match=r"317 s \(limit 300 s.*is the learner running"):
        puller.get()


def test_a_puller_of_a_dead_server_names_the_problem_and_closes(
    make_server: MakeServer, connect: Connect, make_puller: Callable[..., ParamsPuller]
) -> None:
    server, clock = make_server(), Clock()
    server.stop()
    puller = make_puller(connect(server), stale_seconds=10.0, clock=clock)
    clock.now += 11.0

    def message() -> str:
        with pytest.raises(StaleParamsError) as caught:
            puller.wait_first(0.0)
        return str(caught.value)

    deadline = time.monotonic() + 60.0
    while "did not complete within" not in message():
        assert time.monotonic() < deadline
        puller._stop.wait(0.01)
    started = time.monotonic()
    puller.close()
    assert time.monotonic() - started < 5.0


def test_parameters_of_another_length_are_reported_and_never_handed_out(
    make_server: MakeServer,
    connect: Connect,
    make_puller: Callable[..., ParamsPuller],
    eventually: Eventually,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client, clock = connect(make_server()), Clock()
    puller = make_puller(client, stale_seconds=100.0, clock=clock)
    publish(client, 1)
    assert first_of(puller).params.version == 1
    clock.now += 60.0
    publish(client, 2, values=np.zeros(4, np.float32))
    eventually(lambda: "passing over parameters" in caplog.text)
    assert newest_of(puller).params.version == 1
    # They are no sign of a learner that is alive.
    clock.now += 60.0
    with pytest.raises(StaleParamsError, match=r"\(4,\)\] where this network has 3"):
        puller.get()
    publish(client, 3)
    eventually(lambda: follows(puller, 3))


FORGED = {
    "a version beyond the run's end": {"version": 9 * 10**18, "steps": 40},
    "steps beyond the run's end": {"version": 5, "steps": 9 * 10**18},
    "a negative version": {"version": -1, "steps": 1},
    "a version that cannot have been reached since": {"version": 10**8, "steps": 10},
    "steps that cannot have been reached since": {"version": 5, "steps": 5 * 10**8},
    "values that are no numbers": {"version": 5, "values": np.full(3, np.nan, np.float32)},
    "values without end": {"version": 5, "values": np.array([0, np.inf, 0], np.float32)},
}


@pytest.mark.parametrize("forged", FORGED)
def test_parameters_that_cannot_be_the_learners_are_passed_over(
    make_server: MakeServer,
    connect: Connect,
    make_puller: Callable[..., ParamsPuller],
    eventually: Eventually,
    forged: str,
) -> None:
    client = connect(make_server())
    publish(client, 3)
    puller = make_puller(client)
    first_of(puller)
    publish(client, **{"finished": True} | FORGED[forged])
    eventually(lambda: puller.rejected_versions == 1)
    kept = newest_of(puller).params
    assert (kept.version, kept.steps, kept.finished) == (3, 30, False)
    publish(client, 4)
    eventually(lambda: newest_of(puller).params.version == 4)


def test_a_version_that_nobody_follows_up_gives_way_in_the_end(
    make_server: MakeServer,
    connect: Connect,
    make_puller: Callable[..., ParamsPuller],
    eventually: Eventually,
) -> None:
    client, clock = connect(make_server()), Clock()
    puller = make_puller(client, clock=clock, stale_seconds=100.0)
    publish(client, 1000)  # a stranger's, before anything of the learner's came
    first_of(puller)
    clock.now += 60.0
    publish(client, 5)
    assert newest_of(puller).params.version == 1000
    clock.now += 60.0
    publish(client, 6)
    eventually(lambda: follows(puller, 6))


def test_waiting_for_the_first_version_is_bounded(
    make_server: MakeServer, connect: Connect, make_puller: Callable[..., ParamsPuller]
) -> None:
    assert make_puller(connect(make_server())).wait_first(0.01) is None


def test_a_publishers_thread_says_that_it_comes_round_whether_it_has_something_to_send_or_not(
    make_server: MakeServer,
    connect: Connect,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Eventually,
) -> None:
    monkeypatch.setattr(params, "_ROUND_SECONDS", 0.001)
    rounds: list[int] = []
    publisher = ParamsPublisher(connect(make_server()), on_round=rounds.append)
    eventually(lambda: len(rounds) > 2)
    publisher.publish(lambda: np.zeros(3, np.float32), version=7, steps=1, finished=False)
    eventually(lambda: rounds.count(7) > 2)
    publisher.close(timeout_seconds=60.0)
    assert set(rounds) == {0, 7}


def test_closing_the_publisher_of_a_dead_server_takes_no_longer_than_its_limit(
    make_server: MakeServer, connect: Connect
) -> None:
    server = make_server()
    publisher = ParamsPublisher(connect(server))
    server.stop()
    publisher.publish(lambda: np.zeros(3, np.float32), version=1, steps=1, finished=False)
    started = time.monotonic()
    publisher.close(timeout_seconds=0.2)
    assert time.monotonic() - started < 5.0


def test_what_a_missing_server_did_not_take_is_sent_when_it_is_there(
    make_server: MakeServer,
    connect: Connect,
    eventually: Eventually,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = make_server()
    server.stop()
    publisher = ParamsPublisher(connect(server), timeout_seconds=0.05)
    for version in (1, 2, 3):
        caplog.clear()
        publisher.publish(lambda: np.zeros(3, np.float32), version=version, steps=1, finished=False)
        eventually(lambda: "publishing parameters" in caplog.text)
    client = connect(make_server(port=server.port))
    eventually(lambda: inserts_of(client) > 0, 60.0)
    publisher.close(timeout_seconds=60.0)
    header, _ = next(iter(client.sample(tables.PARAMS, emit_timesteps=False))).data
    assert header[0] == 3


def test_only_the_newest_of_the_versions_that_wait_is_sent(
    make_server: MakeServer, connect: Connect, eventually: Eventually
) -> None:
    client = connect(make_server())
    publisher = ParamsPublisher(client)
    begun, go_on = threading.Event(), threading.Event()

    def slow_values() -> np.ndarray:
        begun.set()
        assert go_on.wait(60.0)
        return np.zeros(3, np.float32)

    publisher.publish(slow_values, version=1, steps=1, finished=False)
    assert begun.wait(60.0)
    for version in (2, 3, 4):
        publisher.publish(lambda: np.zeros(3, np.float32), version=version, steps=1, finished=False)
    go_on.set()
    publisher.close(timeout_seconds=60.0)
    assert inserts_of(client) == 2
    header, _ = next(iter(client.sample(tables.PARAMS, emit_timesteps=False))).data
    assert header[0] == 4


def broken() -> np.ndarray:
    raise FloatingPointError("the device is on fire")


def wrong_type() -> np.ndarray:
    return np.zeros(3, np.float64)


@pytest.mark.parametrize(
    ("values_fn", "error", "text"),
    [(broken, FloatingPointError, "on fire"), (wrong_type, ValueError, "float64")],
)
def test_what_goes_wrong_while_sending_surfaces_at_the_next_publish(
    make_server: MakeServer,
    connect: Connect,
    values_fn: Callable[[], np.ndarray],
    error: type[Exception],
    text: str,
) -> None:
    publisher = ParamsPublisher(connect(make_server()))
    publisher.publish(values_fn, version=1, steps=1, finished=False)
    publisher._thread.join(60.0)
    with pytest.raises(error, match=text):
        publisher.publish(values_fn, version=2, steps=1, finished=False)
    with pytest.raises(error, match=text):
        publisher.close()
