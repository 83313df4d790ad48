"""Imports go one way, and the mathematics never needs the old half of the stack.

`tabular` may import `learner`: the study runs on the deep learner's own equations, not on a copy.
"""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("actors", "learner", "reverb_server", "report", "tabular", "benchmarks", "launch")
MAY_IMPORT = {
    "actors": set(),
    "learner": set(),
    "reverb_server": set(),
    "report": set(),
    "tabular": {"learner"},
    # They measure the system as it is launched; of them `launch` needs the command's entry only.
    "benchmarks": {"actors", "learner", "reverb_server", "report", "launch"},
    "launch": {"actors", "learner", "reverb_server", "report", "tabular", "benchmarks"},
}
RESTRICTED = {"reverb": {"reverb_server", "launch", "benchmarks"}, "launchpad": {"launch"}}


def imports_of(package: str) -> dict[pathlib.Path, set[str]]:
    """File -> top-level names it imports, anywhere in it."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
        found[path] = names
    assert found
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_what_lies_below_them(package):
    allowed = MAY_IMPORT[package] | {package}
    for path, names in imports_of(package).items():
        assert names & set(PACKAGES) <= allowed, path


@pytest.mark.parametrize(("library", "packages"), RESTRICTED.items())
def test_a_transport_library_stays_in_its_place(library, packages):
    for package in set(PACKAGES) - packages:
        for path, names in imports_of(package).items():
            assert library not in names, path


@pytest.mark.parametrize("package", ["actors", "learner", "report", "tabular"])
def test_the_mathematics_imports_without_tensorflow(package):
    modules = [f"{package}.{p.stem}" for p in sorted((ROOT / package).glob("[a-z]*.py"))]
    code = f"import sys, {', '.join(modules)}; print('tensorflow' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_nothing_opens_a_courier_server():
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert "CourierNode" not in path.read_text(), path
