"""metrics.jsonl: one JSON object per line, appended by the monitor, read by every tool.

Every line in the file is whole, except perhaps the last: a writer may be in the middle of it, or
have died there. Such a torn line is removed before the next row is appended. Readers may therefore
ignore a torn last line, and treat any other malformed line as corruption.

Values that JSON does not know (NaN, infinities) are written as null. The file may be a stranger's:
lines have a limit, and no text that is read has control characters in it.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from report.json_file import load_json, open_plain_file
from report.plain_text import plain
from report.torn_line import remove_unfinished, unfinished_bytes

Row = dict[str, Any]

# A row is a few hundred bytes; beyond this, a line is none.
_MAX_LINE_BYTES = 1 << 20
# So much of a line beyond that is passed over. What is longer may be a hole that takes no room on
# disk, and hours to read.
_MAX_PASSED_OVER_BYTES = 64 << 20
# So much is read to find the number of a malformed line.
_MAX_COUNTED_BYTES = 256 << 20
# Of times and frames. Beyond it a float has no whole numbers, and a device no counter.
_MAX_COUNT = 2**62


class EndlessLineError(ValueError):
    """A line so long that the rest of the file is not read."""

    def __init__(self) -> None:
        passed_over = f"more than {_MAX_PASSED_OVER_BYTES >> 20} MiB long"
        super().__init__(f"{passed_over}; the rest of the file is not read")


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
        line_bytes = unfinished_bytes(descriptor)
        start = os.fstat(descriptor).st_size - line_bytes
        if 0 < line_bytes < _MAX_LINE_BYTES and _is_row(os.pread(descriptor, line_bytes, start)):
            os.write(descriptor, b"\n")
        elif line_bytes:
            remove_unfinished(descriptor)
            print(
                f"monitor: {self.path} ended in a half-written line, removed its "
                f"{line_bytes} bytes",
                file=sys.stderr,
            )


def is_metric(value: Any) -> bool:
    """Whether a row may hold the value: a real number, a text, or None for "no value"."""
    return value is None or isinstance(value, (str, numbers.Real))


def fault_of(row: Row) -> str | None:
    """Why a row is none of a run's, or None: who said it, when and at which frame must be known."""
    if not isinstance(row.get("role"), str):
        return "no text as 'role'"
    for key in ("time", "frames"):
        value = _recorded(row.get(key))
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"no finite number as {key!r}"
        if not 0 <= value <= _MAX_COUNT:
            return f"a number out of bounds as {key!r}"
    for key, value in row.items():
        if not is_metric(value):
            return f"neither a number nor a text as {key!r}"
    return None


def recordable(row: Row) -> Row:
    """A row without fault, as whoever records it can take it: nothing in it fails anywhere.

    Whole frames, Python's numbers, and texts and names that can be seen. NaN and the infinities
    stay: only files must do without.
    """
    values = {plain(key): _python_value(value) for key, value in row.items()}
    return {**values, "time": float(row["time"]), "frames": int(row["frames"])}


def encode_row(row: Row) -> bytes:
    """One line of metrics.jsonl, newline included."""
    values = {key: _json_value(key, value) for key, value in row.items()}
    return json.dumps(values, allow_nan=False).encode() + b"\n"


def decode_row(line: bytes) -> Row:
    """The inverse of encode_row; ValueError if the line is not one JSON object of metrics."""
    if len(line) > _MAX_LINE_BYTES:
        raise ValueError(f"longer than {_MAX_LINE_BYTES >> 20} MiB")
    row = load_json(line)
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, got {type(row).__name__}")
    if any(isinstance(value, (list, dict)) for value in row.values()):
        raise ValueError("a value is neither a number nor a text")
    return {plain(key): _recorded(value) for key, value in row.items()}


def read_rows(
    path: str | os.PathLike[str],
    tail_bytes: int | None = None,
    on_malformed: Callable[[ValueError], None] | None = None,
) -> Iterator[Row]:
    """Yields the rows of a metrics.jsonl, or those in its last `tail_bytes` bytes.

    A torn last line is a writer at work, and ends the iteration. Any other malformed line raises
    ValueError with the file and the line number. With `on_malformed` no line does: it is given the
    error, of a torn last line too, and the line is passed over. A line without an end in sight is
    malformed in any case, and the last that is read.
    """
    with open_plain_file(path) as file:
        seek_to_tail(file, tail_bytes)
        first_bytes, name_line, lines = file.tell(), None, 0
        whole = True
        # The writer may finish a line that was not whole: reading on would start in its middle.
        while whole:
            lines += 1
            try:
                line = read_line(file)
                if not line:
                    return
                whole = line.endswith(b"\n")
                row = decode_row(line)
            except ValueError as error:
                is_endless = isinstance(error, EndlessLineError)
                if on_malformed is None and not whole and not is_endless:
                    return
                if name_line is None:
                    name_line = line_names(path, first_bytes)
                problem = malformed_line(path, name_line(lines), error)
                if on_malformed is None:
                    raise problem from error
                on_malformed(problem)
                if is_endless:
                    return
                continue
            yield row


def read_line(file: BinaryIO) -> bytes:
    """The next line; of one beyond any limit only as much as shows that it is, and its newline.

    Raises EndlessLineError where that newline is not in sight.
    """
    line = file.readline(_MAX_LINE_BYTES + 1)
    end, passed_over_bytes = line, 0
    while len(end) == _MAX_LINE_BYTES + 1 and not end.endswith(b"\n"):
        end = file.readline(_MAX_LINE_BYTES + 1)
        passed_over_bytes += len(end)
        if passed_over_bytes > _MAX_PASSED_OVER_BYTES:
            raise EndlessLineError
    return line if end is line or not end.endswith(b"\n") else line + b"\n"


def seek_to_tail(file: BinaryIO, tail_bytes: int | None) -> None:
    """Moves to the first line that starts within the last `tail_bytes` bytes (None: all lines)."""
    size_bytes = file.seek(0, os.SEEK_END)
    if tail_bytes is None or tail_bytes >= size_bytes:
        file.seek(0)
        return
    # One byte early: if that byte is the newline before a line, the line itself is kept.
    file.seek(size_bytes - tail_bytes - 1)
    read_line(file)


def line_names(path: str | os.PathLike[str], start_bytes: int) -> Callable[[int], str]:
    """What to call the lines from an offset on, the first of them being 1: as an editor does."""
    if start_bytes > _MAX_COUNTED_BYTES:
        return lambda number: f"line {number} from byte {start_bytes} on"
    lines_before, left_bytes = 0, start_bytes
    with open_plain_file(path) as file:
        # In bounded blocks, and only when asked for: a reader of the tail never saw these lines.
        while left_bytes > 0 and (block := file.read(min(left_bytes, 1 << 20))):
            lines_before += block.count(b"\n")
            left_bytes -= len(block)
    return lambda number: f"line {lines_before + number}"


def malformed_line(path: str | os.PathLike[str], line: str, error: ValueError) -> ValueError:
    """The error for the malformed line of that name."""
    return ValueError(f"{os.fspath(path)}, {line}: not a metrics row: {error}")


def _write_lines(descriptor: int, data: bytes) -> None:
    """Writes all of it, or raises with whole lines written only."""
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        remove_unfinished(descriptor)
        raise


def _is_row(line: bytes) -> bool:
    try:
        decode_row(line)
    except ValueError:
        return False
    return True


def _json_value(key: str, value: Any) -> Any:
    if not is_metric(value):
        raise TypeError(f"metric {key!r} is {value!r}: a row holds numbers, texts and None")
    return _recorded(value)


def _recorded(value: Any) -> Any:
    """A metric as the file has it; a number that is none, or beyond any, is no value."""
    value = _python_value(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _python_value(value: Any) -> Any:
    """A metric as a value of Python's own; a whole number that fits no counter is no value."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, bool) or value is None:
        return value
    # NumPy's scalars are numbers too, but json takes only Python's.
    if isinstance(value, numbers.Integral):
        return int(value) if abs(int(value)) < 2**63 else None
    return float(value)
