"""Signals to a run: once to stop in order, twice to kill, and one to come back."""

import io
import signal
import sys

import pytest

from launch.errors import ExitCode
from launch.supervise.stop_signals import StopSignals

pytestmark = pytest.mark.usefixtures("restored_signals")


@pytest.fixture
def killed():
    return []


@pytest.fixture
def stop(killed):
    stop = StopSignals()
    stop.install(kill=lambda: killed.append(True))
    assert not stop.requested
    return stop


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED),
        (signal.SIGTERM, ExitCode.INTERRUPTED),
        (signal.SIGUSR1, ExitCode.COME_BACK),
    ],
)
def test_the_first_signal_asks_for_an_orderly_stop(stop, killed, number, code, capsys):
    signal.raise_signal(number)
    assert stop.requested and not killed
    assert stop.exit_code is code
    assert capsys.readouterr().out.startswith("stopping: ")


def test_a_second_interrupt_kills_but_a_repeated_sigterm_does_not(stop, killed, capsys):
    for _ in range(3):
        signal.raise_signal(signal.SIGTERM)
    assert not killed
    signal.raise_signal(signal.SIGINT)
    assert killed
    assert capsys.readouterr().out.splitlines()[-1] == "killing the run"


def test_what_comes_after_the_first_signal_does_not_change_the_exit_code(stop):
    signal.raise_signal(signal.SIGUSR1)
    signal.raise_signal(signal.SIGTERM)
    assert stop.exit_code is ExitCode.COME_BACK


def test_signals_that_come_while_something_is_printed_are_heard_and_said(stop, killed, capfd):
    """Printing does not nest, so whoever is interrupted in it must not be printed into."""

    class Interrupted(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data) -> int:
            while not killed:
                signal.raise_signal(signal.SIGINT)
            return len(data)

    with pytest.MonkeyPatch.context() as patch:
        output = io.TextIOWrapper(io.BufferedWriter(Interrupted()))
        patch.setattr(sys, "stdout", output)
        print("training", flush=True)
    assert killed == [True]
    assert [line.split()[0] for line in capfd.readouterr().out.splitlines()] == [
        "stopping:",
        "killing",
    ]


def test_where_a_scheduler_starts_it_again_sigterm_makes_room_too():
    stop = StopSignals(term_comes_back=True)
    stop.install(kill=lambda: None)
    signal.raise_signal(signal.SIGTERM)
    assert stop.exit_code is stop.exit_code_unsaved is ExitCode.COME_BACK
