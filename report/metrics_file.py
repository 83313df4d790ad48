"""metrics.jsonl: one JSON object per line, appended by the monitor, read by every tool.

Every line in the file is whole, except perhaps the last: a writer may be in the middle of it, or
have died there. Such a torn line is removed before the next row is appended. Readers may therefore
ignore a torn last line, and treat any other malformed line as corruption.

Values that JSON does not know (NaN, infinities) are written as null.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

Row = dict[str, Any]

_TAIL_BLOCK_BYTES = 4096


class MetricsFile:
    """Appends rows to a metrics.jsonl.

    The file is opened anew for every batch. That costs microseconds once a second, and it makes a
    retry after a full disk, or after someone moved the file away, the same as a first write.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    def append(self, rows: Iterable[Row]) -> None:
        """Writes a batch and hands it to the operating system before returning.

        Raises OSError if the batch could not be written; some of its first rows may be in the file.
        Raises TypeError for a value that has no JSON form, before anything is written.
        """
        data = b"".join(encode_row(row) for row in rows)
        if not data:
            return
        # O_RDWR: finding a torn line has to read it.
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._repair_last_line(descriptor)
            _write_lines(descriptor, data)
        finally:
            os.close(descriptor)

    def _repair_last_line(self, descriptor: int) -> None:
        """Makes the file end in a newline: finishes a whole last row, removes a torn one."""
        line = _unfinished_line(descriptor)
        if _is_row(line):
            os.write(descriptor, b"\n")
        elif line:
            _remove_torn_line(descriptor)
            print(
                f"monitor: {self.path} ended in a half-written line, removed its {len(line)} bytes",
                file=sys.stderr,
            )


def is_metric(value: Any) -> bool:
    """Whether a row may hold the value: a real number, a text, or None for "no value"."""
    return value is None or isinstance(value, (str, numbers.Real))


def encode_row(row: Row) -> bytes:
    """One line of metrics.jsonl, newline included."""
    values = {key: _json_value(key, value) for key, value in row.items()}
    return json.dumps(values, allow_nan=False).encode() + b"\n"


def decode_row(line: bytes) -> Row:
    """The inverse of encode_row; ValueError if the line is not one JSON object."""
    row = json.loads(line.decode())
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, got {type(row).__name__}")
    return row


def read_rows(
    path: str | os.PathLike[str],
    tail_bytes: int | None = None,
    on_malformed: Callable[[ValueError], None] | None = None,
) -> Iterator[Row]:
    """Yields the rows of a metrics.jsonl, or those in its last `tail_bytes` bytes.

    A torn last line is a writer at work, and ends the iteration. Any other malformed line raises
    ValueError with the file and the line number. With `on_malformed` no line does: it is given the
    error, of a torn last line too, and the line is passed over.
    """
    with open(path, "rb") as file:
        seek_to_tail(file, tail_bytes)
        while True:
            start_bytes = file.tell()
            line = file.readline()
            if not line:
                return
            try:
                row = decode_row(line)
            except ValueError as error:
                whole = line.endswith(b"\n")
                if on_malformed is not None:
                    on_malformed(malformed_line(path, start_bytes, error))
                elif whole:
                    raise malformed_line(path, start_bytes, error) from error
                if whole:
                    continue
                return
            yield row
            # The writer may have finished this very line since: reading on would start mid-line.
            if not line.endswith(b"\n"):
                return


def seek_to_tail(file: BinaryIO, tail_bytes: int | None) -> None:
    """Moves to the first line that starts within the last `tail_bytes` bytes (None: all lines)."""
    size_bytes = file.seek(0, os.SEEK_END)
    if tail_bytes is None or tail_bytes >= size_bytes:
        file.seek(0)
        return
    # One byte early: if that byte is the newline before a line, the line itself is kept.
    file.seek(size_bytes - tail_bytes - 1)
    file.readline()


def malformed_line(path: str | os.PathLike[str], start_bytes: int, error: ValueError) -> ValueError:
    """The error for the malformed line at `start_bytes`, with its line number."""
    number = 1
    with open(path, "rb") as file:
        # Counted only now, in bounded blocks: a reader of the tail never saw the lines before it.
        while start_bytes > 0:
            block = file.read(min(start_bytes, 1 << 20))
            if not block:
                break
            number += block.count(b"\n")
            start_bytes -= len(block)
    return ValueError(f"{os.fspath(path)}, line {number}: not a metrics row: {error}")


def _write_lines(descriptor: int, data: bytes) -> None:
    """Writes all of it, or raises with whole lines written only."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        _remove_torn_line(descriptor)
        raise


def _remove_torn_line(descriptor: int) -> None:
    line = _unfinished_line(descriptor)
    if line:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - len(line))


def _unfinished_line(descriptor: int) -> bytes:
    """What follows the last newline; empty for what is no regular file, a device say."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return b""
    tail = b""
    start_bytes = status.st_size
    while start_bytes > 0:
        block_bytes = min(_TAIL_BLOCK_BYTES, start_bytes)
        start_bytes -= block_bytes
        tail = os.pread(descriptor, block_bytes, start_bytes) + tail
        if b"\n" in tail:
            return tail[tail.rindex(b"\n") + 1 :]
    return tail


def _is_row(line: bytes) -> bool:
    try:
        decode_row(line)
    except ValueError:
        return False
    return True


def _json_value(key: str, value: Any) -> Any:
    if not is_metric(value):
        raise TypeError(f"metric {key!r} is {value!r}: a row holds numbers, texts and None")
    if isinstance(value, (bool, str)) or value is None:
        return value
    # NumPy's scalars are numbers too, but json takes only Python's.
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if math.isfinite(value) else None
