"""What the doctor says of libraries that do not load."""

import pathlib
import signal
import sys

import pytest

from launch.commands.doctor import libraries
from launch.machine.child import run_child

LIBPYTHON = f"libpython3.{sys.version_info.minor}.so.1.0"


@pytest.fixture
def nobody_finds_libpython(monkeypatch):
    """As on a Debian machine without the package of it."""

    def linked(binary: pathlib.Path) -> str | None:
        return f"{LIBPYTHON} not found" if binary.suffix == ".so" else None

    monkeypatch.setattr(libraries, "linked_libpython", linked)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_library", "No module named 'no_such_library'"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("raise SystemExit(3)", "exit code 3"),
    ],
)
def test_an_import_that_fails_or_crashes_is_reported(code, said):
    check = libraries.check_import("it", code)
    assert check.ok is False
    assert said in check.found
    assert check.fix


def test_an_illegal_instruction_is_explained_by_the_missing_avx():
    check = libraries.check_import("it", f"import os; os.kill(os.getpid(), {int(signal.SIGILL)})")
    assert "AVX" in check.fix


def test_a_child_that_hangs_is_ended():
    result = run_child("import threading; threading.Event().wait()", timeout_seconds=1.0)
    assert not result.ok
    assert "not finished" in result.text


def test_an_unknown_rom_is_named():
    check = libraries.check_roms(["pong", "no_such_game"])
    assert check.ok is False
    assert "no_such_game" in check.found
    assert "pong" not in check.found


def test_a_missing_libpython_says_how_to_get_it(monkeypatch, nobody_finds_libpython):
    monkeypatch.setattr(sys, "base_prefix", "/nowhere")
    check = libraries.check_libpython()
    assert check.ok is False
    assert LIBPYTHON in check.found
    assert f"apt install {LIBPYTHON.removesuffix('.so.1.0')}" in check.fix


def test_a_libpython_of_the_interpreters_own_folder_is_pointed_at(
    monkeypatch, tmp_path, nobody_finds_libpython
):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / LIBPYTHON).touch()
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    assert f"LD_LIBRARY_PATH={tmp_path / 'lib'}" in libraries.check_libpython().fix


def test_a_reverb_that_needs_no_libpython_is_fine_without(monkeypatch):
    monkeypatch.setattr(libraries, "linked_libpython", lambda binary: None)
    assert libraries.check_libpython().ok
