"""What the doctor says of a machine that is too small."""

import resource

from launch.commands.doctor import machine


def test_little_memory_or_disk_fails_and_some_is_a_note():
    oks = [
        machine._amount_check("disk", gib * 2**30, 2 * 2**30, 10 * 2**30, "x").ok
        for gib in (1, 5, 20)
    ]
    assert oks == [False, None, True]


def test_free_memory_is_less_than_the_machine_has():
    assert 0 < machine._available_bytes() < 2**50


def test_the_tightest_memory_limit_above_us_counts(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert machine._cgroup_free_bytes(tmp_path) == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert machine._cgroup_free_bytes(tmp_path) is None


def test_a_low_open_file_limit_says_how_to_raise_it(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    check = machine.check_open_files()
    assert check.ok is False
    assert check.fix == "ulimit -n 1024"
