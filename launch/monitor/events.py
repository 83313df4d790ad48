"""TensorBoard event files: one scalar per numeric key, tag `<role>/<key>`, step = global frames.

The files lie directly in the run directory. TensorFlow is imported with the first row only: it
takes seconds and hundreds of megabytes, and a monitor without TensorBoard needs none of it.
"""

import contextlib
import errno
import numbers
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from report.metrics_file import Row

# In every row, and already there as wall time, tag and step.
_NOT_SCALARS = frozenset({"time", "role", "frames"})


class EventWriter:
    """Writes rows as TensorBoard scalars. TensorFlow's write errors become OSError."""

    def __init__(self, directory: str | os.PathLike[str]):
        self.path = Path(directory)
        self._writer: Any = None

    def append(self, rows: Iterable[Row]) -> None:
        """Writes and flushes a batch.

        After a failure the next batch goes to a new event file: the record that failed may be torn,
        and TensorBoard reads no further than that in a file, but goes on to the next one.
        """
        rows = list(rows)
        if not rows:
            return
        import tensorflow as tf

        try:
            if self._writer is None:
                self.path.stat()  # TensorFlow would make a folder that was deleted anew
                self._writer = tf.summary.create_file_writer(os.fspath(self.path))
            with self._writer.as_default():
                for row in rows:
                    step = np.array(row["frames"], np.int64)
                    for key, value in _scalars(row):
                        tf.summary.scalar(f"{row['role']}/{key}", value, step=step)
            self._writer.flush()
        except tf.errors.OpError as error:
            self._abandon_writer(tf)
            raise _os_error(error, self.path) from error

    def close(self) -> None:
        """Closes the event file; a later append opens another."""
        if self._writer is not None:
            # Nothing can be lost here, append has flushed.
            self._writer.close()
            self._writer = None

    def _abandon_writer(self, tf: Any) -> None:
        if self._writer is not None:
            # Closing flushes, which fails for the reason that append is about to raise.
            with contextlib.suppress(tf.errors.OpError):
                self._writer.close()
            self._writer = None
        # On a full disk every attempt leaves an empty file behind: they would pile up.
        for file in self.path.glob(f"events.out.tfevents.*.{os.getpid()}.*"):
            if file.stat().st_size == 0:
                file.unlink()


def _scalars(row: Row) -> Iterable[tuple[str, np.ndarray]]:
    """The numeric values of a row; a missing value (None) and texts have no scalar.

    As arrays: TensorFlow keeps every Python number it has ever been given, some 300 bytes each.
    """
    for key, value in row.items():
        if key not in _NOT_SCALARS and isinstance(value, numbers.Real):
            yield key, np.array(value, np.float32)


def _os_error(error: Any, path: Path) -> OSError:
    """A TensorFlow error as the OSError it stands for; its first line is `<file>; <reason>`."""
    reason = error.message.splitlines()[0].split("; ")[-1]
    code = errno.ENOSPC if "No space left on device" in reason else errno.EIO
    return OSError(code, reason, os.fspath(path))
