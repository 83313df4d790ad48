"""The wheel: what is in it, what it says of itself, and its command where all else is missing."""

import email
import json
import os
import pathlib
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

from launch.commands.doctor.packages import PYTHONS
from launch.versions import VERSION

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = (
    "actors",
    "benchmarks",
    "launch",
    "learner",
    "report",
    "reverb_server",
    "tabular",
    "vantage",
)
WAIT_SECONDS = 120.0  # bounds a hang


def run(*command: str | pathlib.Path) -> subprocess.CompletedProcess:
    # Far from the source tree, which would be imported instead.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command,
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The project's wheel, built from a copy: setuptools leaves its work in the source tree."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    flags = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir")
    done = run(sys.executable, "-m", "pip", "wheel", *flags, out, source)
    assert done.returncode == 0, done.stderr
    (path,) = out.iterdir()
    return path


def test_the_wheel_holds_every_module_and_every_table(wheel):
    files = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".py", ".csv", ".html", ".typed")
    }
    assert files <= set(zipfile.ZipFile(wheel).namelist())


def test_its_metadata_names_the_version_the_pythons_and_what_each_needs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(
            archive.read(f"vantage_rl-{VERSION}.dist-info/METADATA")
        )
        entry_points = archive.read(f"vantage_rl-{VERSION}.dist-info/entry_points.txt").decode()
    assert metadata["Name"] == "vantage-rl"
    assert metadata["Version"] == VERSION
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"] == "The Vantage developers"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert set(metadata["Requires-Python"].split(",")) == {">=3.10", "<3.12"}
    classifiers = metadata.get_all("Classifier")
    pythons = {line.rpartition(" ")[2] for line in classifiers if ":: Python :: 3." in line}
    assert pythons == set(PYTHONS)
    assert "Operating System :: POSIX :: Linux" in classifiers
    requirements = [line.replace('"', "'") for line in metadata.get_all("Requires-Dist")]
    assert "dm-reverb==0.14.0; python_version >= '3.11'" in requirements
    assert "dm-reverb==0.7.2; python_version < '3.11'" in requirements
    # pip could not install the whole with this one among the plain requirements.
    assert (
        "tensorflow-cpu==2.15.1; python_version >= '3.11' and extra == 'unresolvable'"
        in requirements
    )
    assert "vantage = launch.cli.entry:main" in entry_points


@pytest.fixture(scope="module")
def vantage(wheel, tmp_path_factory):
    """The command, where pip installed the wheel and there is nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    # Our own pip installs into it: one of its own would take longer to come than all the rest.
    venv.create(folder, with_pip=False)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    done = run(*pip, "install", "--no-deps", "--no-index", "--no-compile", wheel)
    assert done.returncode == 0, done.stderr
    listed = json.loads(run(*pip, "list", "--format=json").stdout)
    assert listed == [{"name": "vantage-rl", "version": VERSION}]
    return folder / "bin" / "vantage"


def test_where_everything_is_missing_the_doctor_says_what(vantage):
    done = run(vantage, "doctor")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "missing: numpy, " in done.stdout
    for name in ("jax", "reverb", "launchpad", "ale_py"):
        assert f"No module named '{name}'" in done.stdout, name
    assert "`make setup` in a checkout" in done.stdout
    assert "needs fixing: packages" in done.stdout


@pytest.mark.parametrize("args", [[], ["--help"], ["train"], ["train", "--serial"]])
def test_where_everything_is_missing_other_commands_point_to_the_doctor(vantage, args):
    done = run(vantage, *args)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("vantage: error: No module named")
    assert line.endswith("`vantage doctor` lists what is missing")


def test_the_version_needs_no_packages(vantage):
    assert run(vantage, "--version").stdout == f"vantage {VERSION}\n"
