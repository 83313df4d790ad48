"""What is left in a log of the lines that Reverb writes while it loads a checkpoint."""

import os

import pytest

from reverb_server.load_log import without_counting


@pytest.fixture
def log(tmp_path):
    """A log, open as a supervisor opens it."""
    with (tmp_path / "log").open("ab", buffering=0) as file:
        yield file


def lines(log) -> list[str]:
    with open(log.name) as file:
        return file.read().splitlines()


def test_lines_that_count_records_are_taken_out_and_all_others_stay(log):
    counting = b"[x.cc:1] Still reading trajectory data. %d records have been read so far.\n"
    log.write(b"before\n" + counting % 0)
    with without_counting(log.fileno()):
        log.write(b"Loading\n")
        for number in range(1, 400, 100):
            log.write(counting % number)
        log.write(b"Completed\n")
    log.write(b"after\n")
    assert lines(log) == [
        *("before", (counting % 0).decode().strip()),  # of an earlier load, which may have failed
        *("Loading", "Completed", "after"),
    ]


def test_a_load_that_fails_leaves_every_line(log):
    with pytest.raises(ValueError, match="torn"), without_counting(log.fileno()):
        log.write(b"100 records have been read so far.\n")
        raise ValueError("torn")
    assert lines(log) == ["100 records have been read so far."]


def test_a_file_that_is_written_at_a_place_of_its_own_is_left_alone(tmp_path):
    with (tmp_path / "log").open("wb", buffering=0) as log, without_counting(log.fileno()):
        log.write(b"100 records have been read so far.\n")
    assert len(lines(log)) == 1


def test_what_is_not_a_file_is_left_alone():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb", buffering=0) as output:
        with without_counting(output.fileno()):
            output.write(b"100 records have been read so far.\n")
        assert pipe.readline() == b"100 records have been read so far.\n"
