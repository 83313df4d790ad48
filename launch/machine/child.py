"""Asks a child interpreter: what it loads, takes or crashes with is gone when it ends.

Standard library only, because the doctor asks this way.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

# Importing TensorFlow from a cold network disk takes minutes, not seconds.
_CHILD_SECONDS = 300.0


class ChildResult(NamedTuple):
    """How a child interpreter ended: its last line of output, or why it failed."""

    ok: bool
    text: str
    signal: int | None = None
    warning: str = ""  # its last line on stderr, where it did not fail


def run_child(
    code: str,
    *args: str,
    timeout_seconds: float = _CHILD_SECONDS,
    environment: Mapping[str, str] | None = None,
) -> ChildResult:
    """Runs `code` in an interpreter like ours; a crash or a hang there is an answer too."""
    quiet = {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # Looking at a GPU must not take its memory from a run.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    try:
        child = subprocess.run(
            [sys.executable, "-c", code, *args],
            env={**os.environ, **quiet, **(environment or {})},
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
    said, complained = _last_line(child.stdout), _last_line(child.stderr)
    if child.returncode != 0:
        return ChildResult(False, complained or f"exit code {child.returncode}")
    return ChildResult(True, said, warning=complained)


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or [""])[-1]
