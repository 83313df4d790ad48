"""How long ago a file was written, by the clock of its file system alone."""

import os
import pathlib
import tempfile


def file_age_seconds(path: pathlib.Path) -> float | None:
    """Compares the file with one written now beside it; None where that cannot be told."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            seconds = os.fstat(probe.fileno()).st_mtime - path.stat().st_mtime
    except OSError:
        return None
    return seconds if seconds >= 0.0 else None  # that clock has been set back since
