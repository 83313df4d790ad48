"""Rows of a metrics.jsonl as they are written: for a view in a process that is not the monitor.

A poll reads what was appended since the last one and never waits. Only whole lines count, so a
writer in the middle of a line (or repairing a torn one) is never seen.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from report import metrics_file
from report.json_file import open_plain_file
from report.metrics_file import Row

# Minutes of a run with hundreds of actors, and more of any other.
TAIL_BYTES = 1 << 20
_MAX_POLL_BYTES = 8 << 20


def recent_rows(path: Path, on_malformed: Callable[[ValueError], None] | None = None) -> list[Row]:
    """The rows at the end of a metrics.jsonl, as `read_rows` has them; none before it exists."""
    if not path.exists():
        return []
    return _of_a_run(metrics_file.read_rows(path, TAIL_BYTES, on_malformed))


def _of_a_run(rows: Iterable[Row]) -> list[Row]:
    """Without what no monitor has written: the file may be a stranger's, or an older version's."""
    return [row for row in rows if metrics_file.fault_of(row) is None]


class MetricsFollower:
    """Hands out each row of a growing metrics.jsonl once.

    The file need not exist yet. `tail_bytes` starts near the end of a file that is already long;
    None starts at its beginning.
    """

    def __init__(self, path: Path, tail_bytes: int | None = None):
        self.path = path
        self._tail_bytes = tail_bytes
        self._offset_bytes: int | None = None  # None: not opened yet.

    def poll(self) -> list[Row]:
        """The rows of the lines completed since the last call.

        There is a limit, which bounds the memory of the first polls of a long file; the rest comes
        with the next poll. A malformed line raises ValueError naming file and line, once: the rows
        before it are returned first, those after it by the polls that follow.
        """
        if not self.path.exists():
            return []
        rows: list[Row] = []
        with open_plain_file(self.path) as file:
            offset_bytes = self._seek(file)
            stop_bytes = offset_bytes + _MAX_POLL_BYTES
            while offset_bytes < stop_bytes:
                try:
                    line = metrics_file.read_line(file)
                    if not line.endswith(b"\n"):
                        break
                    rows.append(metrics_file.decode_row(line))
                except ValueError as error:
                    if rows:
                        break
                    is_endless = isinstance(error, metrics_file.EndlessLineError)
                    self._offset_bytes = file.seek(0, os.SEEK_END if is_endless else os.SEEK_CUR)
                    name = metrics_file.line_names(self.path, offset_bytes)(1)
                    raise metrics_file.malformed_line(self.path, name, error) from error
                offset_bytes = file.tell()
        self._offset_bytes = offset_bytes
        return _of_a_run(rows)

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
