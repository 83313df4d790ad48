"""Arrays of an `.npz` that may be damaged, or anyone's: sizes are known before anything is read.

`np.savez` stores without compression, so the members of an archive are no larger than its file, and
a header says in one fixed form how large its array is. What is not so was not written by us: it is
damaged, and nothing of it is inflated or allocated.
"""

import math
import pathlib
import re
import stat
import struct
import types
import zipfile
import zlib
from typing import NamedTuple

import numpy as np

# What reading a truncated, altered or invented archive raises, depending on which bytes are wrong.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    OverflowError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<|][biuf][1248])', 'fortran_order': (?:False|True), "
    rb"'shape': \(((?:\d{1,18}(?:, |,)?)*)\), \} *\n"
)
_SUFFIX = ".npy"
_BLOCK_BYTES = 1 << 20
_MAX_VERIFIED_BYTES = 1 << 30


class ArrayKind(NamedTuple):
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


class Archive:
    """An open `.npz`, as a context; arrays are read one by one, by name."""

    def __init__(self, path: pathlib.Path):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a file")
        self._archive = zipfile.ZipFile(path)
        try:
            self._members = _checked_members(self._archive, status.st_size)
        except BaseException:
            self._archive.close()
            raise

    def __enter__(self) -> "Archive":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._archive.close()

    @property
    def names(self) -> set[str]:
        """Names of the arrays in it."""
        return set(self._members)

    def size_bytes(self, name: str) -> int:
        """Bytes that an array and its header take, unpacked."""
        return self._members[name].file_size

    def kind(self, name: str) -> ArrayKind:
        """What the header of an array says, which its size agrees with."""
        with self._archive.open(self._members[name]) as file:
            magic, length = file.read(len(_MAGIC)), file.read(2)
            header = file.read(int.from_bytes(length, "little"))
        found = _HEADER.fullmatch(header)
        if magic != _MAGIC or found is None:
            raise ValueError(f"{name} does not begin as an array of numbers does")
        shape = tuple(int(number) for number in found[2].replace(b",", b" ").split())
        kind = ArrayKind(shape, np.dtype(found[1].decode()))
        size_bytes = len(_MAGIC) + 2 + len(header) + math.prod(shape) * kind.dtype.itemsize
        if size_bytes != self.size_bytes(name):
            raise ValueError(f"{name} is not of the size that its header says")
        return kind

    def verify(self, name: str) -> None:
        """Raises BadZipFile if the checksum of an array is wrong; those beyond any use pass."""
        if self.size_bytes(name) <= _MAX_VERIFIED_BYTES:
            with self._archive.open(self._members[name]) as file:
                while file.read(_BLOCK_BYTES):
                    pass

    def read(self, name: str) -> np.ndarray:
        """The array, once its checksum is verified; `kind` says how much memory it takes."""
        self.kind(name)
        with self._archive.open(self._members[name]) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
            # The checksum is looked at when the end is reached.
            if file.read(1):
                raise ValueError(f"{name} is longer than its header says")
        return array


def _checked_members(archive: zipfile.ZipFile, file_bytes: int) -> dict[str, zipfile.ZipInfo]:
    members = {info.filename.removesuffix(_SUFFIX): info for info in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise zipfile.BadZipFile("two arrays have one name")
    for name, info in members.items():
        stored = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
        if not stored or info.compress_size != info.file_size:
            raise zipfile.BadZipFile(f"{name} is compressed or encrypted")
    claimed_bytes = sum(info.file_size for info in members.values())
    if claimed_bytes > file_bytes:
        raise zipfile.BadZipFile(f"{claimed_bytes} bytes in a file of {file_bytes}")
    return members
