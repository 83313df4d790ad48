"""Files that are replaced as a whole: a reader sees the old one or the new one, never half."""

import contextlib
import os
import pathlib
import tempfile


def write_atomically(path: pathlib.Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Replaces a file, or whatever has its name: a link is replaced and never written through."""
    data = content.encode() if isinstance(content, str) else content
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode)
            os.replace(file.name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file.name)
            raise
