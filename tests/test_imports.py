"""Imports go one way: between packages, between the rooms of `launch`, and inside every package.

Imports inside functions count too. `tabular` may import `learner`: the study runs on the deep
learner's own equations, not on a copy.
"""

import ast
import graphlib
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
MAY_IMPORT = {
    "actors": set(),
    "learner": set(),
    "reverb_server": set(),
    "report": set(),
    "tabular": {"learner"},
    "launch": {"actors", "learner", "reverb_server", "report", "tabular"},
    # For scripts and notebooks; nothing of ours imports it.
    "vantage": {"actors", "report", "launch"},
    # They measure the system as it is launched; nothing imports them.
    "benchmarks": {"actors", "learner", "reverb_server", "report", "launch"},
}
PACKAGES = tuple(MAY_IMPORT)
# Who may import a library of the transport; benchmarks measure it.
TRANSPORT = {"reverb": {"reverb_server", "launch", "benchmarks"}, "launchpad": {"launch"}}
# A room, or a file that is in none, imports only from the rows above its own. `monitor` comes
# before `nodes`, because the monitor's node runs the monitor's loop.
ROOMS = (
    ("courier_stand_in", "errors", "heartbeat", "invocation", "nearest"),
    ("quick_imports", "terminal", "versions"),
    ("bounds", "flag_types", "machine", "names", "trust"),
    ("config",),
    ("config_json", "layout", "replay", "scores", "seeds"),
    ("memory_need", "node_status", "run_dir"),
    ("config_checks",),
    ("stored",),
    ("build",),
    ("agent",),
    ("monitor",),
    ("nodes",),
    ("program",),
    ("supervise",),
    ("gate",),
    ("engines",),
    ("profile", "suite"),
    ("tune",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
WITHOUT = {
    "actors": {"tensorflow", "reverb", "launchpad", "jax", "chex"},
    "learner": {"tensorflow", "reverb", "launchpad"},
    "report": {"tensorflow", "reverb", "launchpad"},
    "tabular": {"tensorflow", "reverb", "launchpad"},
}


def module_name(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    module_name(path): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")
}


def imports_of(module: str) -> set[str]:
    """Modules of ours, and first names of others, that a module imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None, f"{module}: a relative import"
            # `from launch import config` is an import of launch.config.
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & set(MODULES) or {node.module}
    return {name if name in MODULES else name.split(".")[0] for name in found}


IMPORTS = {module: imports_of(module) for module in MODULES}


def child_of(package: str, module: str) -> str | None:
    """The part of a package that a module is, or lies in; None outside of the package."""
    inside = module.removeprefix(f"{package}.")
    return None if inside == module else inside.split(".")[0]


def imports_between_children(package: str) -> dict[str, set[str]]:
    """Part of a package -> the other parts it imports."""
    edges: dict[str, set[str]] = {}
    for module, imported in IMPORTS.items():
        child = child_of(package, module)
        if child is not None:
            others = {child_of(package, name) for name in imported} - {None, child}
            edges.setdefault(child, set()).update(others)
    return edges


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_lies_below_it(package):
    for module, imported in IMPORTS.items():
        if module.split(".")[0] == package:
            ours = {name.split(".")[0] for name in imported} & set(PACKAGES)
            assert ours <= MAY_IMPORT[package] | {package}, module


def test_a_room_of_launch_imports_only_from_the_rooms_below_it():
    rank = {room: row for row, rooms in enumerate(ROOMS) for room in rooms}
    edges = imports_between_children("launch")
    assert set(edges) == set(rank), "every part of launch has its place in the order"
    not_below = [
        f"{room} imports {other}"
        for room, others in edges.items()
        for other in others
        if rank[other] >= rank[room]
    ]
    assert not_below == []


@pytest.mark.parametrize(
    "package",
    sorted(name for name, path in MODULES.items() if path.name == "__init__.py"),
)
def test_the_parts_of_a_package_do_not_import_in_a_circle(package):
    graphlib.TopologicalSorter(imports_between_children(package)).prepare()


@pytest.mark.parametrize(("library", "packages"), TRANSPORT.items())
def test_a_transport_library_stays_in_its_place(library, packages):
    importers = {name.split(".")[0] for name, imported in IMPORTS.items() if library in imported}
    assert importers and importers <= packages


@pytest.mark.parametrize("package", WITHOUT)
def test_a_package_imports_without(package):
    ours = set(PACKAGES) - MAY_IMPORT[package] - {package}
    modules = [name for name in MODULES if name.split(".")[0] == package and "__main__" not in name]
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert set(modules) <= loaded
    assert loaded & (WITHOUT[package] | ours) == set()


def test_nothing_opens_a_courier_server():
    for module, path in MODULES.items():
        assert "CourierNode" not in path.read_text(), module


def test_folders_without_an_init_file_hold_no_modules():
    folders = {path.parent for path in MODULES.values()}
    assert all((folder / "__init__.py").exists() for folder in folders)


def test_nothing_reads_or_writes_pickles():
    for module, path in MODULES.items():
        text = path.read_text()
        assert "import pickle" not in text and "cloudpickle" not in text, module
        assert "allow_pickle=True" not in text, module
