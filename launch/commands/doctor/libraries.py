"""The libraries: do their binaries load here, what will JAX compute on, are the ROMs there?

Nothing of them is imported into this process, only into children with a time limit: a library that
crashes or hangs at import is just what the doctor has to report.
"""

import importlib.machinery
import json
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Sequence

from launch import courier_stand_in
from launch.commands.doctor.check import SETUP, Check
from launch.errors import InputError
from launch.machine import device
from launch.machine.child import run_child

_REVERB = ("reverb", "libpybind.so")  # package, file
_COURIER = ("courier", "python/py_client.so")


def check_libpython() -> Check:
    """Some binaries need a libpython that the loader can find.

    An interpreter built with --enable-shared has loaded it already. One with libpython inside (the
    default of pyenv, and uv, conda, Debian) has not; then the binaries must find it themselves.
    """
    name = "libpython"
    wanted = (_REVERB,) if courier_stand_in.is_needed() else (_REVERB, _COURIER)
    binaries = [path for path in map(_package_file, wanted) if path is not None]
    if len(binaries) < len(wanted):
        return Check(name, False, "Reverb or Launchpad is not installed", SETUP)
    try:
        loaded = linked_libpython(pathlib.Path(sys.executable).resolve())
        linked = {binary: linked_libpython(binary) for binary in binaries}
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name, None, f"could not ask ldd: {error}", "the imports below decide")
    needed = {binary: library for binary, library in linked.items() if library}
    if not needed:
        return Check(name, True, "not needed by this Reverb")
    if loaded and loaded.startswith("/"):
        return Check(name, True, f"{loaded}, loaded by the interpreter")
    for binary, library in needed.items():
        if not library.startswith("/"):
            return Check(name, False, f"{library}, asked for by {binary}", _libpython_fix())
    return Check(name, True, next(iter(needed.values())))


def check_launchpad() -> Check:
    """Launchpad as our program imports it."""
    check = check_import("launchpad", "import launch, launchpad; launchpad.ReverbNode")
    if check.ok and courier_stand_in.is_needed():
        return check._replace(found="works, with a stand-in for Courier, which Vantage never opens")
    return check


def check_import(name: str, code: str) -> Check:
    """Imports in a child process."""
    result = run_child(code)
    if result.ok:
        return Check(f"import {name}", True, "works")
    if result.signal == signal.SIGILL:
        fix = "use a CPU with AVX: TensorFlow is built for it"
        return Check(f"import {name}", False, result.text, fix)
    return Check(f"import {name}", False, result.text, f"fix what is above, or {SETUP}")


def check_device() -> Check:
    """What the learner would compute on."""
    name = "learner device"
    try:
        used = device.ask_jax()
    except InputError as error:
        return Check(name, False, str(error), SETUP)
    unused = device.unused_accelerator(used)
    if unused is not None:
        return Check(name, None, f"{used}; {unused.found}", unused.fix)
    return Check(name, True, str(used))


def check_roms(games: Sequence[str]) -> Check:
    """A ROM for each game, with the checksum that ale-py expects."""
    code = """
import json, sys
from ale_py import roms
def is_good(game):
    try:
        return roms.get_rom_path(game) is not None
    except OSError:
        return False
print(json.dumps([game for game in json.loads(sys.argv[1]) if not is_good(game)]))
"""
    result = run_child(code, json.dumps(list(games)))
    if not result.ok:
        return Check("roms", False, result.text, SETUP)
    missing = json.loads(result.text)
    if missing:
        found = f"missing or damaged: {', '.join(missing)}"
        return Check("roms", False, found, "unset ALE_ROMS_DIR, or reinstall ale-py")
    return Check("roms", True, f"all {len(games)} games")


def linked_libpython(binary: pathlib.Path) -> str | None:
    """The libpython that the loader gives a binary, or "NAME not found"; None if it needs none.

    By ldd, which knows rpath, LD_LIBRARY_PATH and the cache.
    """
    listing = subprocess.run(
        ["ldd", str(binary)], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    for line in listing.splitlines():
        library, _, target = line.strip().partition(" => ")
        if re.match(r"libpython3\.\d+\.so", library):
            return target.split(" (")[0] if target.startswith("/") else f"{library} not found"
    return None


def _package_file(package_and_file: tuple[str, str]) -> pathlib.Path | None:
    package, file = package_and_file
    spec = importlib.machinery.PathFinder.find_spec(package)  # Does not import it.
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = pathlib.Path(folder) / file
        if path.exists():
            return path
    return None


def _libpython_fix() -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    own = pathlib.Path(sys.base_prefix) / "lib" / f"libpython{version}.so.1.0"
    if own.exists():
        return f"{SETUP}, which links it; or export LD_LIBRARY_PATH={own.parent}"
    return (
        f"apt install libpython{version}; for pyenv: "
        f"PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install --force {version}"
    )
