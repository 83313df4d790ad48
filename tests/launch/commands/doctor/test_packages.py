"""What the doctor says of Python and the packages."""

import importlib.metadata
import pathlib
import re
import sys

import pytest

from launch.commands.doctor import packages
from launch.commands.doctor.packages import (
    PYTHONS,
    check_packages,
    check_python,
    installed_packages,
    required_packages,
)

ROOT = pathlib.Path(__file__).parents[4]


def test_every_python_it_takes_has_a_lock_and_is_in_the_metadata():
    assert {path.name for path in ROOT.glob("requirements-3*.lock")} == {
        f"requirements-{version}{device}.lock"
        for version in PYTHONS
        for device in ("", "-cuda", "-tpu")
    }
    assert f'requires-python = ">={PYTHONS[-1]},<3.12"' in (ROOT / "pyproject.toml").read_text()
    assert re.search(rf"^SUPPORTED := {' '.join(PYTHONS)}$", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize(
    ("version", "ok"), [("3.11.2", True), ("3.10.13", True), ("3.12.1", False)]
)
def test_a_python_without_wheels_is_refused(monkeypatch, version, ok):
    monkeypatch.setattr(packages.platform, "python_version_tuple", lambda: version.split("."))
    assert check_python().ok is ok


def test_the_transport_of_this_python_is_pinned():
    check = check_packages(required_packages(), installed_packages())
    assert check.ok, check.found
    reverb = "0.14.0" if sys.version_info >= (3, 11) else "0.7.2"
    assert f"dm-reverb {reverb}" in check.found
    for name in ("dm-launchpad", "tensorflow-cpu", "numpy", "jax", "jaxlib"):
        assert f"{name} " in check.found


def test_the_requirements_of_an_installed_package_are_those_of_the_source_tree(monkeypatch):
    """Metadata names the extra in a marker, pyproject.toml in a table."""
    metadata = [
        "jax==0.0.1; python_version >= '3'",
        "tensorflow-cpu==0.0.2; extra == 'unresolvable'",
        "pytest==0.0.3; extra == 'dev'",
    ]
    monkeypatch.setattr(packages, "PYPROJECT", pathlib.Path("/nowhere"))
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: metadata)
    check = check_packages(required_packages(), {"packaging": "26"})
    assert check.found == "jax is missing; tensorflow-cpu is missing"


def test_a_wrong_version_is_named():
    wanted = ["numpy==9.9.9", "dm_tree>=0.1"]
    check = check_packages(wanted, {"numpy": "1.26.4", "dm-tree": "0.1.8", "packaging": "26"})
    assert check.ok is False
    assert check.found == "numpy 1.26.4 is not ==9.9.9"
    assert "make setup" in check.fix


def test_a_wrong_version_fails_against_what_is_really_installed():
    assert check_packages(["numpy==0.0.1"], installed_packages()).ok is False


def test_missing_packages_are_named_even_without_the_package_that_reads_requirements():
    wanted = ["jax>=0.6", "numpy==1.26.4", "tomli>=2; python_version < '3.11'", "packaging>=23"]
    check = check_packages(wanted, {"numpy": "1.26.4"})
    assert check.ok is False
    assert check.found == "missing: jax, packaging, and more"
