"""The output of a process in a file: opened for it, and its last words."""

import os
import pathlib
from typing import IO

from report.json_file import open_plain_file

_TAIL_BYTES = 1 << 16


def open_log(path: pathlib.Path) -> IO[bytes]:
    """The log, or nothing in its place: a full disk must not keep a node from starting."""
    try:
        path.parent.mkdir(exist_ok=True)
        return path.open("ab")
    except OSError:
        return open(os.devnull, "ab")


def last_line(path: pathlib.Path) -> str:
    """The last thing a process said."""
    lines = last_lines(path, 1)
    return lines[-1] if lines else "no output"


def last_lines(path: pathlib.Path, count: int) -> list[str]:
    """The end of a log; of one of any length only so much is read."""
    try:
        with open_plain_file(path) as file:
            file.seek(-min(os.fstat(file.fileno()).st_size, _TAIL_BYTES), os.SEEK_END)
            lines = file.read(_TAIL_BYTES).decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-count:]
