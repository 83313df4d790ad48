"""The doctor on this machine, and what it says when something is wrong."""

import resource
import signal
import sys

import pytest
from packaging.requirements import Requirement

from launch.commands import doctor
from launch.commands.doctor import Check


def test_this_machine_is_ready_and_the_heavy_libraries_stay_out_of_our_process():
    code = "import sys; from launch.commands.doctor import collect_checks as c; r = c(); " + (
        "print([(k.name, k.found) for k in r if k.ok is False], "
        "sorted({'launchpad', 'reverb', 'tensorflow', 'jax'} & set(sys.modules)))"
    )
    result = doctor.run_child(code)
    assert result.ok, result.text
    assert result.text == "[] []"


def test_pins_come_from_the_project_and_name_the_old_stack():
    exact = {r.name for r in doctor.required_packages() if str(r.specifier).startswith("==")}
    assert {"dm-launchpad", "dm-reverb", "tensorflow-cpu", "protobuf", "numpy"} <= exact
    assert {"jax", "jaxlib"} <= exact


def test_a_wrong_version_fails_the_packages_check_and_is_named():
    wanted = [Requirement("numpy==9.9.9"), Requirement("dm_tree>=0.1")]
    check = doctor.check_packages(wanted, {"numpy": "1.26.4", "dm-tree": "0.1.8"})
    assert check.ok is False
    assert check.found == "numpy 1.26.4 is not ==9.9.9"
    assert "make setup" in check.fix


def test_a_wrong_version_fails_against_what_is_really_installed():
    assert doctor.check_packages([Requirement("numpy==0.0.1")]).ok is False


def test_a_missing_package_is_named():
    check = doctor.check_packages([Requirement("dm-reverb==0.7.2")], {})
    assert check.ok is False
    assert check.found == "dm-reverb is missing"


def test_a_failed_check_prints_its_fix_and_gives_exit_code_1(capsys):
    checks = [Check("python", True, "3.10"), Check("cows", False, "none", "buy '.[cows]'")]
    assert doctor.run_doctor(checks) == 1
    output = capsys.readouterr().out
    assert "buy '.[cows]'" in output
    assert "needs fixing: cows" in output


def test_a_note_shows_its_advice_but_does_not_fail(capsys):
    assert doctor.run_doctor([Check("cores", None, "1", "2 or more")]) == 0
    assert "2 or more" in capsys.readouterr().out


def test_a_terminal_gets_a_table_with_the_fix_as_written(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    assert doctor.run_doctor([Check("gpu", None, "not used", "pip install -e '.[cuda]'")]) == 0
    assert "pip install -e '.[cuda]'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_library", "No module named 'no_such_library'"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("raise SystemExit(3)", "exit code 3"),
    ],
)
def test_an_import_that_fails_or_crashes_is_reported(code, said):
    check = doctor.check_import("it", code)
    assert check.ok is False
    assert said in check.found
    assert check.fix


def test_an_illegal_instruction_is_explained_by_the_missing_avx():
    check = doctor.check_import("it", f"import os; os.kill(os.getpid(), {int(signal.SIGILL)})")
    assert "AVX" in check.fix


def test_a_child_that_hangs_is_ended():
    result = doctor.run_child("import threading; threading.Event().wait()", timeout_seconds=1.0)
    assert not result.ok
    assert "not finished" in result.text


def test_an_unknown_rom_is_named():
    check = doctor.check_roms(["pong", "no_such_game"])
    assert check.ok is False
    assert "no_such_game" in check.found
    assert "pong" not in check.found


def test_a_missing_libpython_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(doctor, "_linked_libpython", lambda path: None)
    monkeypatch.setattr(sys, "base_prefix", "/nowhere")
    check = doctor.check_libpython()
    assert check.ok is False
    assert "apt install libpython3.10" in check.fix


def test_a_libpython_of_the_interpreters_own_folder_is_pointed_at(monkeypatch, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libpython3.10.so.1.0").touch()
    monkeypatch.setattr(doctor, "_linked_libpython", lambda path: None)
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    assert f"LD_LIBRARY_PATH={tmp_path / 'lib'}" in doctor.check_libpython().fix


def test_little_memory_or_disk_fails_and_some_is_a_note():
    oks = [
        doctor._amount_check("disk", gib * 2**30, 2 * 2**30, 10 * 2**30, "x").ok
        for gib in (1, 5, 20)
    ]
    assert oks == [False, None, True]


def test_the_tightest_memory_limit_above_us_counts(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert doctor._cgroup_free_bytes(tmp_path) == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert doctor._cgroup_free_bytes(tmp_path) is None


def test_a_low_open_file_limit_says_how_to_raise_it(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    check = doctor.check_open_files()
    assert check.ok is False
    assert check.fix == "ulimit -n 1024"
