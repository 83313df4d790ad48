"""Logs of nodes on standard output."""

import pytest

from launch.supervise import log_echo
from launch.supervise.log_echo import LogEcho


@pytest.fixture
def log(tmp_path):
    return tmp_path / "actor-0.log"


def append(path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_whole_lines_are_printed_once_with_the_name_of_their_node(log, capsys):
    echo = LogEcho({"actor-0": log}, cut=False)
    echo.poll()  # there is no log yet
    append(log, b"one\ntwo\nthr")
    echo.poll()
    append(log, b"ee\x1b[2J\n")
    echo.poll()
    echo.poll()
    assert capsys.readouterr().out == "actor-0 | one\nactor-0 | two\nactor-0 | three?[2J\n"


def test_what_was_there_before_is_not_printed_again(log):
    append(log, b"old\n")
    said = []
    echo = LogEcho({"actor-0": log}, cut=False, write=said.append)
    append(log, b"new\n")
    echo.poll()
    assert said == ["actor-0 | new\n"]


@pytest.mark.parametrize("cut", [True, False])
def test_a_log_that_nobody_else_reads_is_cut_and_nothing_of_it_is_lost(log, monkeypatch, cut):
    monkeypatch.setattr(log_echo, "_KEPT_BYTES", 100)
    said = []
    echo = LogEcho({"a": log}, cut=cut, write=said.append)
    for number in range(50):
        append(log, b"%d\n" % number * 3)
        echo.poll()
        echo.poll()
    lines = [line.removeprefix("a | ").strip() for line in said]
    assert lines == [str(number) for number in range(50) for _ in range(3)]
    assert (log.stat().st_size < 150) == cut


def test_a_line_without_an_end_is_not_kept_in_memory(log, monkeypatch):
    monkeypatch.setattr(log_echo, "_READ_BYTES", 8)
    said = []
    echo = LogEcho({"a": log}, cut=False, write=said.append)
    append(log, b"x" * 20)
    for _ in range(4):
        echo.poll()
    assert "".join(line.removeprefix("a | ").strip() for line in said) == "x" * 16


def test_a_log_that_got_shorter_is_followed_from_its_new_end(log):
    said = []
    echo = LogEcho({"replay-0": log}, cut=False, write=said.append)
    append(log, b"loading\n" + b"100 records have been read so far.\n" * 9)
    echo.poll()
    log.write_bytes(b"loading\n")
    echo.poll()
    append(log, b"serving\n")
    echo.poll()
    assert said[-1] == "replay-0 | serving\n" and len(said) == 11
