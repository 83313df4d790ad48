"""JSON files of run directories, read without trust: a stranger may have made the folder.

A pipe or a device under the name of a file is not opened, a file of any size does not fill the
memory, and no text that comes out of one has control characters in it.
"""

import json
import math
import os
import pathlib
import stat
from typing import Any, BinaryIO

from report.plain_text import plain_value

# The status of ten thousand nodes, twice over.
_MAX_BYTES = 4 << 20
_MAX_DEPTH = 32


def open_plain_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a file to read its bytes; raises OSError for what is none, such as a pipe."""
    # Without O_NONBLOCK, opening a pipe waits until someone writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    # Before a file is made of it: of a folder there is none.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, "not a plain file", os.fspath(path))
    return os.fdopen(descriptor, "rb")


def read_json(path: pathlib.Path) -> Any:
    """What the file says; raises ValueError or OSError, with a reason in one line, if it cannot."""
    with open_plain_file(path) as file:
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise ValueError(f"is larger than {_MAX_BYTES >> 20} MiB, which no file of a run is")
    return parse_json(text)


def parse_json(text: bytes) -> Any:
    """The value a JSON text stands for; raises ValueError, in one line, if it stands for none."""
    value = load_json(text)
    if not _is_flat(value, _MAX_DEPTH):
        raise ValueError(f"is nested more than {_MAX_DEPTH} levels deep")
    return plain_value(value)


def load_json(text: bytes) -> Any:
    """As `parse_json`, but texts are as the file has them, and values as deep."""
    try:
        return json.loads(text.decode())
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def json_text(value: Any) -> str:
    """A value as JSON that every program reads: numbers that it does not have are null."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_flat(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_flat(item, levels - 1) for item in inner)
