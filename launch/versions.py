"""The version of Vantage, and those of the packages that a run is made with."""

import importlib.metadata
import platform
from collections.abc import Mapping

# Here and nowhere else: pyproject.toml reads it from this file.
VERSION = "0.1.0"

_RECORDED = (
    "dm-launchpad",
    "dm-reverb",
    "tensorflow-cpu",
    "jax",
    "jaxlib",
    "dm-haiku",
    "optax",
    "ale-py",
    "numpy",
)
# What the hosts of one run have in common. A run may be resumed with others, but not share them.
_STACK = ("dm-reverb", "tensorflow-cpu", "jax")


def installed_versions() -> dict[str, str]:
    """Name -> version of what results depend on, Python and ourselves included."""
    found = {"python": platform.python_version(), "vantage-rl": VERSION}
    for name in _RECORDED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def stack_difference(run: Mapping[str, str], here: Mapping[str, str]) -> str | None:
    """What of the stack differs between a run's versions and others, in words; None if nothing."""
    pairs = {name: (run[name], here[name]) for name in _STACK if name in run}
    if "python" in run:
        pairs = {"Python": (_minor(run["python"]), _minor(here["python"]))} | pairs
    different = [
        f"{name} {ours} where the run has {theirs}"
        for name, (theirs, ours) in pairs.items()
        if theirs != ours
    ]
    return ", ".join(different) or None


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
