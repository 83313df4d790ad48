"""What nodes write to their logs, again on standard output: for those who collect it from there."""

import os
import pathlib
import sys
from collections.abc import Callable, Mapping

from report.json_file import open_plain_file
from report.plain_text import plain

_READ_BYTES = 1 << 16  # of a log at a time
_KEPT_BYTES = 1 << 20


class LogEcho:
    """Follows the logs of some nodes, and prints each line with the name of its node.

    Logs that nobody else reads are cut when they have grown; logs of a run directory are kept.
    """

    def __init__(
        self,
        logs: Mapping[str, pathlib.Path],
        *,
        cut: bool,
        write: Callable[[str], object] | None = None,
    ):
        self._logs, self._cut = logs, cut
        self._write = write or _print
        # What an earlier host wrote was printed then.
        self._read_bytes = {name: _size(path) for name, path in logs.items()}
        self._rest = dict.fromkeys(logs, b"")

    def poll(self) -> None:
        """Prints what was written since the last call, as far as lines are whole."""
        for name, path in self._logs.items():
            lines = (self._rest[name] + self._read(name, path)).split(b"\n")
            # A line without an end is printed in pieces, and not kept in memory.
            self._rest[name] = lines.pop() if len(lines[-1]) < _READ_BYTES else b""
            for line in lines:
                self._write(f"{name} | {plain(line.decode(errors='replace'))}\n")

    def _read(self, name: str, path: pathlib.Path) -> bytes:
        try:
            with open_plain_file(path) as log:
                # A log may get shorter: replay takes out what it said while it loaded.
                size_bytes = os.fstat(log.fileno()).st_size
                self._read_bytes[name] = min(self._read_bytes[name], size_bytes)
                log.seek(self._read_bytes[name])
                data = log.read(_READ_BYTES)
        except OSError:
            return b""
        self._read_bytes[name] += len(data)
        if self._cut and self._read_bytes[name] > _KEPT_BYTES and not data:
            # Nodes append, so they go on at the new end.
            os.truncate(path, 0)
            self._read_bytes[name] = 0
        return data


def _size(path: pathlib.Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
