"""A log without what Reverb says while it loads a checkpoint: a line for every hundred records.

Reverb writes straight to the process's stderr, whatever its level. Where that is a file, those
lines are taken out once all is loaded; until then they stay, in case the process dies of it.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator

_COUNTING = b" records have been read so far."


@contextlib.contextmanager
def without_counting(descriptor: int = 2) -> Iterator[None]:
    """Takes the lines out that were written to a file meanwhile, if it is open for appending."""
    appends = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
    if not appends or not stat.S_ISREG(os.fstat(descriptor).st_mode):
        yield
        return
    begin_bytes = os.fstat(descriptor).st_size
    yield
    with open(f"/proc/self/fd/{descriptor}", "r+b") as log:
        log.seek(begin_bytes)
        lines = log.readlines()
        kept = [line for line in lines if _COUNTING not in line]
        if kept != lines:
            log.seek(begin_bytes)
            log.truncate()
            log.writelines(kept)
