"""The output of a process in a file: opened for it, and its last words."""

import os
import pathlib
from typing import IO


def open_log(path: pathlib.Path) -> IO[bytes]:
    """The log, or nothing in its place: a full disk must not keep a node from starting."""
    try:
        path.parent.mkdir(exist_ok=True)
        return path.open("ab")
    except OSError:
        return open(os.devnull, "ab")


def last_line(path: pathlib.Path) -> str:
    """The last thing a process said."""
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "no output"
