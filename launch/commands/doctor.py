"""`vantage doctor`: is this machine ready to train, and if not, what to do about it.

Each check looks at one thing and returns a `Check`. The old half of the stack (Launchpad, Reverb,
TensorFlow) and JAX are only ever imported in a child process with a time limit: a library that
crashes or hangs at import is just what the doctor has to report.
"""

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

import psutil
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rich.console import Console
from rich.table import Table
from rich.text import Text

from actors.games import reference_scores

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DISTRIBUTION = "vantage-rl"
_PYPROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"
_SETUP = "run `make setup`"
# Importing TensorFlow from a cold network disk takes minutes, not seconds.
_CHILD_SECONDS = 300.0
# Binaries that are linked against libpython: (package, file).
_LINKED_BINARIES = (("reverb", "libpybind.so"), ("courier", "python/py_client.so"))
_GIB = 2**30
# Six processes of the smallest run, each about 0.5 GiB with the libraries loaded, and some replay.
_MEMORY_NEEDED_BYTES = 4 * _GIB
# The same with the million steps of replay of preset `paper`, at most 4 KiB each.
_MEMORY_WANTED_BYTES = 8 * _GIB
# Logs and learner checkpoints; then also checkpoints of a full replay.
_DISK_NEEDED_BYTES = 2 * _GIB
_DISK_WANTED_BYTES = 10 * _GIB
# Sockets of a few hundred writers and samplers, beside the shared libraries.
_OPEN_FILES_NEEDED = 1024


@dataclasses.dataclass(frozen=True)
class Check:
    """One thing looked at. `ok` is None where a run works but something is worth knowing."""

    name: str
    ok: bool | None
    found: str
    fix: str = ""


@dataclasses.dataclass(frozen=True)
class ChildResult:
    """How a child interpreter ended: its last line of output, or why it failed."""

    ok: bool
    text: str
    signal: int | None = None


def collect_checks() -> list[Check]:
    """Looks at everything, in the order in which one would fix it."""
    return [
        check_python(),
        check_packages(required_packages()),
        check_libpython(),
        check_import("launchpad", "import launchpad; launchpad.ReverbNode"),
        check_import("reverb", "import reverb"),
        check_jax(),
        check_roms(list(reference_scores())),
        check_cores(),
        check_memory(),
        check_disk(pathlib.Path.cwd()),
        check_open_files(),
    ]


def run_doctor(checks: Sequence[Check] | None = None) -> int:
    """Prints the checks; returns 1 if something needs fixing, else 0."""
    console = Console()
    if checks is None:
        with console.status("looking at this machine (imports take a few seconds)"):
            checks = collect_checks()
    if console.is_terminal:
        console.print(_make_table(checks))
    else:
        # Not through rich: it would wrap at 80 columns, and logs are read with grep.
        print("\n".join(_plain_lines(checks)))
    failed = [check.name for check in checks if check.ok is False]
    print(f"needs fixing: {', '.join(failed)}" if failed else "ready to train")
    return 1 if failed else 0


def check_python() -> Check:
    """The wheels of Launchpad and Reverb exist for CPython 3.10 on Linux x86-64."""
    found = f"{platform.python_implementation()} {platform.python_version()}"
    found += f" on {platform.system()} {platform.machine()}"
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return Check("python", False, found, "use a Linux x86-64 machine or container")
    ok = platform.python_implementation() == "CPython" and sys.version_info[:2] == (3, 10)
    return Check("python", ok, found, "" if ok else "make PYTHON=/path/to/python3.10 setup")


def required_packages() -> list[Requirement]:
    """Our direct requirements: of the source tree we run from, else of the installed package.

    The source tree goes first, because an editable install keeps the metadata of the day it was
    made, and a pull may have moved a pin since.
    """
    if _PYPROJECT.exists():
        lines = tomllib.loads(_PYPROJECT.read_text())["project"]["dependencies"]
    else:
        lines = importlib.metadata.requires(_DISTRIBUTION) or []
    requirements = [Requirement(line) for line in lines]
    return [r for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})]


def check_packages(
    requirements: Sequence[Requirement], installed: Mapping[str, str] | None = None
) -> Check:
    """Each requirement against what is installed (canonical name -> version)."""
    if installed is None:
        installed = _installed_versions()
    wrong, pinned = [], []
    for requirement in requirements:
        version = installed.get(canonicalize_name(requirement.name))
        if version is None:
            wrong.append(f"{requirement.name} is missing")
        elif not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} {version} is not {requirement.specifier}")
        elif str(requirement.specifier).startswith("=="):
            pinned.append(f"{requirement.name} {version}")
    if wrong:
        return Check("packages", False, "; ".join(wrong), _SETUP)
    return Check("packages", True, ", ".join(pinned))


def check_libpython() -> Check:
    """The binaries of Reverb and Courier need a libpython3.10.so.1.0 that the loader can find.

    An interpreter built with --enable-shared has loaded it already. One with libpython inside (the
    default of pyenv, and uv, conda, Debian) has not; then the binaries must find it themselves.
    """
    name = "libpython"
    binaries = [path for path in map(_package_file, _LINKED_BINARIES) if path is not None]
    if len(binaries) < len(_LINKED_BINARIES):
        return Check(name, False, "Reverb or Launchpad is not installed", _SETUP)
    try:
        loaded = _linked_libpython(pathlib.Path(sys.executable).resolve())
        linked = [_linked_libpython(path) for path in binaries]
    except (OSError, subprocess.SubprocessError) as error:
        return Check(name, None, f"could not ask ldd: {error}", "the imports below decide")
    if loaded is not None:
        return Check(name, True, f"{loaded}, loaded by the interpreter")
    if all(path is not None for path in linked):
        return Check(name, True, str(linked[0]))
    missing = next(str(b) for b, path in zip(binaries, linked, strict=True) if path is None)
    return Check(name, False, f"not found by {missing}", _libpython_fix())


def check_import(name: str, code: str) -> Check:
    """Imports in a child process: a crash or a hang there is an answer too."""
    result = run_child(code)
    if result.ok:
        return Check(f"import {name}", True, "works")
    if result.signal == signal.SIGILL:
        return Check(
            f"import {name}", False, result.text, "use a CPU with AVX: TensorFlow is built for it"
        )
    return Check(f"import {name}", False, result.text, f"fix what is above, or {_SETUP}")


def check_jax() -> Check:
    """What the learner would run on."""
    result = run_child(
        "import json, jax; "
        "print(json.dumps([[d.platform, d.device_kind, jax.__version__] for d in jax.devices()]))"
    )
    if not result.ok:
        return Check("jax devices", False, result.text, _SETUP)
    devices = json.loads(result.text)
    found = ", ".join(f"{kind} ({where})" if where != kind else kind for where, kind, _ in devices)
    has_unused_gpu = os.path.exists("/proc/driver/nvidia/version") and all(
        where == "cpu" for where, _, _ in devices
    )
    if has_unused_gpu:
        fix = f"pip install -e '.[cuda]' (JAX {devices[0][2]} for CUDA 12)"
        return Check("jax devices", None, f"{found}; an NVIDIA GPU is not used", fix)
    return Check("jax devices", True, found)


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
        return Check("roms", False, result.text, _SETUP)
    missing = json.loads(result.text)
    if missing:
        found = f"missing or damaged: {', '.join(missing)}"
        return Check("roms", False, found, "unset ALE_ROMS_DIR, or reinstall ale-py")
    return Check("roms", True, f"all {len(games)} games")


def check_cores() -> Check:
    """Cores this process may use, which is less than the machine has under Slurm."""
    cores = len(os.sched_getaffinity(0))
    found = f"{cores} usable of {os.cpu_count()}"
    if cores < 2:
        return Check("cores", None, found, "2 or more: actors and learner share one core and wait")
    return Check("cores", True, found)


def check_memory() -> Check:
    """Memory that is free now, within the limit of our cgroup."""
    available_bytes = psutil.virtual_memory().available
    limited_bytes = _cgroup_free_bytes()
    if limited_bytes is not None:
        available_bytes = min(available_bytes, limited_bytes)
    return _amount_check(
        "memory",
        available_bytes,
        _MEMORY_NEEDED_BYTES,
        _MEMORY_WANTED_BYTES,
        "a full `paper` replay",
    )


def check_disk(folder: pathlib.Path) -> Check:
    """Space where runs/ will be."""
    free_bytes = shutil.disk_usage(folder).free
    return _amount_check(
        "disk", free_bytes, _DISK_NEEDED_BYTES, _DISK_WANTED_BYTES, "checkpoints of a full replay"
    )


def check_open_files() -> Check:
    """The soft limit; the hard one says how far a user can raise it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= _OPEN_FILES_NEEDED:
        return Check("open files", True, "unlimited" if soft == unlimited else str(soft))
    if hard == unlimited or hard >= _OPEN_FILES_NEEDED:
        return Check("open files", False, str(soft), f"ulimit -n {_OPEN_FILES_NEEDED}")
    return Check("open files", False, str(soft), f"ask for a hard limit above {hard} (limits.conf)")


def run_child(code: str, *args: str, timeout_seconds: float = _CHILD_SECONDS) -> ChildResult:
    """Runs `code` in an interpreter like ours and says how that went."""
    quiet = {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # Looking at a GPU must not take its memory from a run.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    try:
        child = subprocess.run(
            [sys.executable, "-c", code, *args],
            env={**os.environ, **quiet},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ChildResult(False, f"not finished after {timeout_seconds:g} s")
    if child.returncode < 0:
        name = signal.Signals(-child.returncode).name
        return ChildResult(False, f"crashed with {name}", -child.returncode)
    output = child.stdout if child.returncode == 0 else child.stderr
    last_line = (output.strip().splitlines() or [""])[-1]
    return ChildResult(child.returncode == 0, last_line or f"exit code {child.returncode}")


def _installed_versions() -> dict[str, str]:
    # A half-removed package has metadata without a name.
    return {
        canonicalize_name(distribution.metadata["Name"]): distribution.version
        for distribution in importlib.metadata.distributions()
        if distribution.metadata["Name"]
    }


def _package_file(package_and_file: tuple[str, str]) -> pathlib.Path | None:
    package, file = package_and_file
    spec = importlib.util.find_spec(package)  # Of a top-level package: does not import it.
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = pathlib.Path(folder) / file
        if path.exists():
            return path
    return None


def _linked_libpython(binary: pathlib.Path) -> pathlib.Path | None:
    """The libpython that the loader gives `binary`; it knows rpath, LD_LIBRARY_PATH and cache."""
    listing = subprocess.run(
        ["ldd", str(binary)], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    for line in listing.splitlines():
        library, _, target = line.strip().partition(" => ")
        if library.startswith("libpython3.10.so") and target.startswith("/"):
            return pathlib.Path(target.split(" (")[0])
    return None


def _libpython_fix() -> str:
    own = pathlib.Path(sys.base_prefix) / "lib" / "libpython3.10.so.1.0"
    if own.exists():
        return f"{_SETUP}, which links it; or export LD_LIBRARY_PATH={own.parent}"
    return (
        "apt install libpython3.10; for pyenv: "
        "PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install --force 3.10"
    )


def _cgroup_free_bytes(root: pathlib.Path = pathlib.Path("/sys/fs/cgroup")) -> int | None:
    """What is left under the tightest memory limit above us (cgroup v2), None without a limit."""
    try:
        lines = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    own = next((line[len("0::/") :] for line in lines if line.startswith("0::/")), "")
    free = []
    for folder in (root / own, *(root / own).parents):
        try:
            limit = (folder / "memory.max").read_text().strip()
            used = int((folder / "memory.current").read_text())
        except OSError:
            continue  # Above the root of the hierarchy, or cgroup v1.
        if limit != "max":
            free.append(max(0, int(limit) - used))
    return min(free, default=None)


def _amount_check(name: str, amount: int, needed: int, wanted: int, wanted_for: str) -> Check:
    found = f"{amount / _GIB:.1f} GiB free"
    if amount < needed:
        return Check(name, False, found, f"free some: {needed / _GIB:.0f} GiB are needed")
    if amount < wanted:
        return Check(name, None, found, f"{wanted / _GIB:.0f} GiB for {wanted_for}")
    return Check(name, True, found)


def _word(ok: bool | None) -> str:
    return "note" if ok is None else "ok" if ok else "FIX"


def _plain_lines(checks: Sequence[Check]) -> list[str]:
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines.append(f"{_word(check.ok):<4}  {check.name:<{width}}  {check.found}")
        if check.fix:
            lines.append(f"{'':<6}{'':<{width}}  -> {check.fix}")
    return lines


def _make_table(checks: Sequence[Check]) -> Table:
    styles = {"ok": "green", "note": "yellow", "FIX": "bold red"}
    table = Table("", "check", "found", "what to do")
    for check in checks:
        word = _word(check.ok)
        # Text, because rich would read the brackets of '.[cuda]' as markup.
        table.add_row(Text(word, styles[word]), check.name, Text(check.found), Text(check.fix))
    return table


if __name__ == "__main__":
    sys.exit(run_doctor())
