"""Replay checkpoints that outlive full disks, crashes and clocks set back.

Reverb writes a checkpoint to a folder named by local time, marks it `DONE`, and removes every other
one but the last in alphabetical order. It does not notice a disk that fills up: it marks the torn
files as done and removes the good ones. So the last good checkpoint is set aside, out of its reach,
until the new one has been read to its end.
"""

import logging
import pathlib
import shutil
import time
import zlib
from typing import NamedTuple

import reverb

from reverb_server import stored_layout, tables

_DONE = "DONE"
_BLOCK_BYTES = 1 << 16
# What Reverb turns a failed status into depends on its code: a full disk is an IndexError.
_NOT_WRITTEN = (RuntimeError, LookupError, ValueError)


class Written(NamedTuple):
    """What a checkpoint cost."""

    seconds: float  # in which the server answered nobody
    size_bytes: int


class CheckpointFolder:
    """The folder Reverb writes to; `<folder>.previous` beside it exists only while it does."""

    def __init__(self, directory: pathlib.Path, layout: tables.ItemLayout):
        """`layout` is that of the items which the server is to hold."""
        self._directory = directory
        self._layout = layout
        self._aside = directory.with_name(directory.name + ".previous")

    def make_checkpointer(self) -> reverb.checkpointers.CheckpointerBase:
        """For the server: restores what is there (the default one uses a temporary folder)."""
        self._directory.mkdir(exist_ok=True)
        self._finish_interrupted()
        self._move_unusable_away()
        return reverb.checkpointers.DefaultCheckpointer(str(self._directory))

    def write(self, client: reverb.Client) -> Written | None:
        """Writes a checkpoint; None if that failed, and the one before is still there."""
        self._finish_interrupted()
        self._set_aside()
        started = time.monotonic()
        try:
            path = pathlib.Path(client.checkpoint())
            seconds = time.monotonic() - started
            problem = None if is_whole(path) else f"{path} is torn; is the disk full?"
        except _NOT_WRITTEN as error:
            problem = str(error)
        if problem is not None:
            # What is in memory is worth more than its copy: the run goes on.
            logging.error("no replay checkpoint was written: %s", problem)
            self._put_back()
            return None
        if self._aside.exists():
            shutil.rmtree(self._aside)
        return Written(seconds, sum(file.stat().st_size for file in path.iterdir()))

    def _move_unusable_away(self) -> None:
        """The server would not start on a torn checkpoint, and so never again."""
        for folder in list(self._directory.iterdir()):
            if not (folder / _DONE).exists():
                continue
            if not is_whole(folder):
                self._move_away(folder, "damaged", "is damaged")
            elif not stored_layout.fits(folder, self._layout):
                # Of an earlier version, say. What the learner knows is in checkpoints of its own.
                self._move_away(folder, "other_layout", "holds items of another layout")

    def _move_away(self, folder: pathlib.Path, suffix: str, why: str) -> None:
        away = self._directory.with_name(f"{self._directory.name}.{suffix}")
        logging.error(
            "replay checkpoint %s %s: moved to %s; replay starts empty, and learning waits for "
            "the warm-up again",
            folder,
            why,
            away,
        )
        if away.exists():
            shutil.rmtree(away)
        folder.rename(away)

    def _finish_interrupted(self) -> None:
        """Ends what a write left undone that was interrupted, in this process or in one before."""
        if self._aside.exists():
            # Whatever is whole in the folder was written after the one that was set aside.
            if any(is_whole(folder) for folder in self._directory.iterdir()):
                shutil.rmtree(self._aside)
            else:
                self._put_back()

    def _set_aside(self) -> None:
        done = sorted(f for f in self._directory.iterdir() if (f / _DONE).exists())
        # Others first: an older one left beside the one set aside would pass for a newer.
        self._clear(but=done[-1] if done else None)
        if done:
            done[-1].rename(self._aside)

    def _put_back(self) -> None:
        self._clear()
        if self._aside.exists():
            self._aside.rename(self._directory / "previous")

    def _clear(self, *, but: pathlib.Path | None = None) -> None:
        for entry in self._directory.iterdir():
            if entry == but:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def is_whole(checkpoint: pathlib.Path) -> bool:
    """Whether all files of a checkpoint were written to their end."""
    files = list(checkpoint.glob("*.tfrecord"))
    return (checkpoint / _DONE).exists() and bool(files) and all(_ends(file) for file in files)


def _ends(path: pathlib.Path) -> bool:
    """Whether a compressed file has its end, which holds a check sum of all before it."""
    stream = zlib.decompressobj()
    with path.open("rb") as file:
        try:
            while block := file.read(_BLOCK_BYTES):
                stream.decompress(block)
        except zlib.error:
            return False
    return stream.eof
