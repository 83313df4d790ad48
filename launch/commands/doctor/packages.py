"""Python and the packages: is everything installed, in versions that work together?"""

import importlib
import importlib.metadata
import importlib.util
import platform
import re
from collections.abc import Mapping, Sequence

from launch.commands.doctor.check import PYPROJECT, SETUP, Check

_DISTRIBUTION = "vantage-rl"
# Those with a lock, the first choice first.
PYTHONS = ("3.11", "3.10")
# The extra of what is needed too, but pip cannot combine with the rest.
_UNRESOLVABLE = "unresolvable"


def check_python() -> Check:
    """Reverb and Launchpad have wheels for CPython on Linux x86-64."""
    found = f"{platform.python_implementation()} {platform.python_version()}"
    found += f" on {platform.system()} {platform.machine()}"
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return Check("python", False, found, "use a Linux x86-64 machine or container")
    version = ".".join(platform.python_version_tuple()[:2])
    if platform.python_implementation() == "CPython" and version in PYTHONS:
        return Check("python", True, found)
    return Check("python", False, found, f"make PYTHON=/path/to/python{PYTHONS[0]} setup")


def required_packages() -> list[str]:
    """Our direct requirements: of the source tree we run from, else of the installed package.

    The source tree goes first, because an editable install keeps the metadata of the day it was
    made, and a pull may have moved a pin since.
    """
    if not PYPROJECT.exists():
        return importlib.metadata.requires(_DISTRIBUTION) or []
    # From 3.11 on in the standard library; before that a package of the same interface.
    readers = [name for name in ("tomllib", "tomli") if importlib.util.find_spec(name)]
    if not readers:
        return ["tomli"]  # Enough to say: without it nothing more can be read.
    project = importlib.import_module(readers[0]).loads(PYPROJECT.read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"][_UNRESOLVABLE]]


def installed_packages() -> dict[str, str]:
    """Canonical name -> version of all that is installed."""
    # A half-removed package has metadata without a name.
    return {
        _canonical(distribution.metadata["Name"]): distribution.version
        for distribution in importlib.metadata.distributions()
        if distribution.metadata["Name"]
    }


def check_packages(requirements: Sequence[str], installed: Mapping[str, str]) -> Check:
    """Each requirement against what is installed (canonical name -> version)."""
    if "packaging" not in installed:
        return _check_names(requirements, installed)
    from packaging.requirements import Requirement

    wrong, pinned = [], []
    for requirement in map(Requirement, requirements):
        if requirement.marker and not requirement.marker.evaluate({"extra": _UNRESOLVABLE}):
            continue
        version = installed.get(_canonical(requirement.name))
        if version is None:
            wrong.append(f"{requirement.name} is missing")
        elif not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} {version} is not {requirement.specifier}")
        elif str(requirement.specifier).startswith("=="):
            pinned.append(f"{requirement.name} {version}")
    if wrong:
        return Check("packages", False, "; ".join(wrong), SETUP)
    return Check("packages", True, ", ".join(pinned))


def _check_names(requirements: Sequence[str], installed: Mapping[str, str]) -> Check:
    """What can be said where the package that reads requirements is missing as well."""
    names = [re.split(r"[^\w.-]", line)[0] for line in requirements if ";" not in line]
    missing = [name for name in names if _canonical(name) not in installed]
    return Check("packages", False, f"missing: {', '.join(missing)}, and more", SETUP)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
