"""What a check of the doctor returns, and how it asks a child process."""

import os
import pathlib
import signal
import subprocess
import sys
from typing import NamedTuple

# Where the project was installed from, if it runs from its source tree.
SOURCE_TREE = pathlib.Path(__file__).parents[3]
PYPROJECT = SOURCE_TREE / "pyproject.toml"
SETUP = "run `make setup`" if PYPROJECT.exists() else "run `make setup` in a checkout of Vantage"
# Importing TensorFlow from a cold network disk takes minutes, not seconds.
_CHILD_SECONDS = 300.0


class Check(NamedTuple):
    """One thing looked at. `ok` is None where a run works but something is worth knowing."""

    name: str
    ok: bool | None
    found: str
    fix: str = ""


class ChildResult(NamedTuple):
    """How a child interpreter ended: its last line of output, or why it failed."""

    ok: bool
    text: str
    signal: int | None = None


def run_child(code: str, *args: str, timeout_seconds: float = _CHILD_SECONDS) -> ChildResult:
    """Runs `code` in an interpreter like ours; a crash or a hang there is an answer too."""
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
