"""A scheduler's own command, run with a time limit."""

import subprocess
from collections.abc import Sequence

from launch.errors import InputError


def run_cluster_command(
    command: Sequence[str], *, text: str | None = None, seconds: float, absent: str, late: str
) -> "subprocess.CompletedProcess[str]":
    """How the command ended and what it said, given this text to read.

    Raises InputError with `absent` where there is no such command, and with `late` when it does not
    end in time.
    """
    try:
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise InputError(absent) from None
    except subprocess.TimeoutExpired:
        raise InputError(late) from None
