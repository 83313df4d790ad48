"""Rows of a metrics.jsonl as they are written: for a view in a process that is not the monitor.

A poll reads what was appended since the last one and never waits. Only whole lines count, so a
writer in the middle of a line (or repairing a torn one) is never seen.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from report import metrics_file


class MetricsFollower:
    """Hands out each row of a growing metrics.jsonl once.

    The file need not exist yet. `tail_bytes` starts near the end of a file that is already long;
    None starts at its beginning.
    """

    def __init__(self, path: str | os.PathLike[str], tail_bytes: int | None = None):
        self.path = Path(path)
        self._tail_bytes = tail_bytes
        self._offset_bytes: int | None = None  # None: not opened yet.

    def poll(self, max_bytes: int = 8 << 20) -> list[metrics_file.Row]:
        """The rows of the lines completed since the last call, about `max_bytes` at most.

        The limit bounds the memory of the first polls of a long file; the rest comes with the next
        poll. A malformed line raises ValueError naming file and line, once: the rows before it are
        returned first, those after it by the polls that follow.
        """
        if not self.path.exists():
            return []
        rows: list[metrics_file.Row] = []
        with open(self.path, "rb") as file:
            offset_bytes = self._seek(file)
            stop_bytes = offset_bytes + max_bytes
            while offset_bytes < stop_bytes:
                line = file.readline()
                if not line.endswith(b"\n"):
                    break
                try:
                    rows.append(metrics_file.decode_row(line))
                except ValueError as error:
                    if rows:
                        break
                    self._offset_bytes = offset_bytes + len(line)
                    raise metrics_file.malformed_line(self.path, offset_bytes, error) from error
                offset_bytes += len(line)
        self._offset_bytes = offset_bytes
        return rows

    def _seek(self, file: BinaryIO) -> int:
        """Moves to the first unread line and returns its offset."""
        if self._offset_bytes is None:
            metrics_file.seek_to_tail(file, self._tail_bytes)
        elif os.fstat(file.fileno()).st_size < self._offset_bytes:
            # The writer never cuts whole lines off, so this is another file: read all of it.
            file.seek(0)
        else:
            file.seek(self._offset_bytes)
        return file.tell()
