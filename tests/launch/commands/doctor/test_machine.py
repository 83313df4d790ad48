"""What the doctor says of a machine that is too small."""

import resource

import pytest

from launch.commands.doctor import machine
from launch.config import PRESETS
from launch.layout import node_names
from launch.memory_need import memory_need
from launch.supervise.namespace import NoNamespaceError


def test_little_memory_or_disk_fails_and_some_is_a_note():
    oks = [
        machine._amount_check("disk", gib * 2**30, 2 * 2**30, 10 * 2**30, "x").ok
        for gib in (1, 5, 20)
    ]
    assert oks == [False, None, True]


@pytest.mark.parametrize(("gib", "ok"), [(1, False), (3, None), (16, True)])
def test_free_memory_is_held_against_what_runs_of_the_presets_need(monkeypatch, gib, ok):
    monkeypatch.setattr(machine, "available_bytes", lambda: gib * 2**30)
    assert machine.check_memory().ok is ok


def test_the_doctor_and_a_run_agree_on_what_the_presets_need():
    asked = {"cpu": machine._MEMORY_NEEDED_BYTES, "paper": machine._MEMORY_WANTED_BYTES}
    for preset, size_bytes in asked.items():
        need = memory_need(PRESETS[preset], node_names(PRESETS[preset])).total
        assert size_bytes == pytest.approx(need, abs=0.05 * 2**30)


def test_a_low_open_file_limit_says_how_to_raise_it(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    check = machine.check_open_files()
    assert check.ok is False
    assert check.fix == "ulimit -n 1024"


def test_a_machine_where_replays_port_stays_open_is_told_so_and_still_trains(monkeypatch):
    def refuse():
        raise NoNamespaceError("Operation not permitted")

    monkeypatch.setattr(machine, "make_namespace", refuse)
    check = machine.check_network()
    assert check.ok is None
    assert check.found == "Reverb's port will be open: Operation not permitted"
    assert "firewall" in check.fix
