"""TensorBoard event files: one scalar per numeric key, tag `<role>/<key>`, step = global frames.

The files lie directly in the run directory. TensorBoard's own record writer makes them, so nobody
imports TensorFlow for it, which takes seconds and hundreds of megabytes.
"""

import contextlib
import itertools
import numbers
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from report.metrics_file import Row

# In every row, and already there as wall time, tag and step.
_NOT_SCALARS = frozenset({"time", "role", "frames"})
_FORMAT = "brain.Event:2"  # the first record of every file
_NUMBERS = itertools.count()  # two files of one second and process have different names


class EventWriter:
    """Writes rows as TensorBoard scalars."""

    def __init__(self, directory: str | os.PathLike[str]):
        self.path = Path(directory)
        self._file: Path | None = None
        self._writer: RecordWriter | None = None

    def append(self, rows: Iterable[Row]) -> None:
        """Writes and flushes a batch.

        After a failure the next batch goes to a new event file: the record that failed may be torn,
        and TensorBoard reads no further than that in a file, but goes on to the next one.
        """
        rows = list(rows)
        if not rows:
            return
        try:
            if self._writer is None:
                self._writer = self._open()
            for row in rows:
                self._writer.write(_event(row).SerializeToString())
            self._writer.flush()
        except OSError as error:
            self._abandon()
            raise OSError(error.errno, error.strerror, os.fspath(self.path)) from error

    def close(self) -> None:
        """Closes the event file; a later append opens another."""
        if self._writer is not None:
            # Nothing can be lost here, append has flushed.
            self._writer.close()
            self._writer = None

    def _open(self) -> RecordWriter:
        """A new file; TensorBoard goes by its name, and reads files in the order of their names."""
        name = f"{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.{next(_NUMBERS):06}"
        self._file = self.path / f"events.out.tfevents.{name}"
        writer = RecordWriter(self._file.open("xb"))
        writer.write(Event(wall_time=time.time(), file_version=_FORMAT).SerializeToString())
        return writer

    def _abandon(self) -> None:
        if self._writer is not None:
            # Closing flushes, which fails for the reason that append is about to raise.
            with contextlib.suppress(OSError):
                self._writer.close()
            self._writer = None
        # On a full disk every attempt leaves an empty file behind: they would pile up.
        if self._file is not None and self._file.exists() and self._file.stat().st_size == 0:
            self._file.unlink()


def _event(row: Row) -> Event:
    """The numeric values of a row; a missing value (None) and texts have no scalar."""
    summary = Summary()
    for key, value in row.items():
        if key not in _NOT_SCALARS and isinstance(value, numbers.Real):
            with np.errstate(over="ignore"):  # beyond a float32 is infinite, and no news
                summary.MergeFrom(scalar_pb(f"{row['role']}/{key}", float(value)))
    return Event(wall_time=row["time"], step=row["frames"], summary=summary)
