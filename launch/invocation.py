"""How this installation calls itself: suites, batch scripts and hosts of your own."""

import pathlib
import shlex
import sys
from collections.abc import Sequence


def vantage_command(*args: str) -> list[str]:
    """`vantage ARGS`, with the interpreter that runs this."""
    return [sys.executable, "-m", "launch", *args]


def program_command(module: str, *args: str) -> list[str]:
    """A program of ours that needs TensorFlow: the module's `main` gets these words."""
    return [sys.executable, "-m", "launch.quick_imports", module, *args]


def host_command(run_dir: pathlib.Path, flags: Sequence[str]) -> str:
    """`vantage host` of a run directory, as a shell takes it."""
    return shlex.join(vantage_command("host", "--run-dir", str(run_dir), *flags))
