"""The last line of a file that its writer may have died in, found without reading the file.

Offsets and bounded blocks only: what follows the last newline may be as long as the disk.
"""

import os
import stat

_BLOCK_BYTES = 1 << 16


def unfinished_bytes(descriptor: int) -> int:
    """How much follows the last newline; nothing in what is no regular file, a device say."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return 0
    start = status.st_size
    while start > 0:
        block_bytes = min(_BLOCK_BYTES, start)
        start -= block_bytes
        newline = os.pread(descriptor, block_bytes, start).rfind(b"\n")
        if newline >= 0:
            return status.st_size - (start + newline + 1)
    return status.st_size


def remove_unfinished(descriptor: int) -> None:
    """Makes the file end in a newline again, or empty."""
    torn_bytes = unfinished_bytes(descriptor)
    if torn_bytes:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - torn_bytes)
