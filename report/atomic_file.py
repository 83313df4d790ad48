"""Files that are replaced as a whole: a reader sees the old one or the new one, never half."""

import contextlib
import errno
import os
import pathlib
import tempfile


def write_atomically(path: pathlib.Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Writes a file, over one of its name; raises OSError where that is a link or a device."""
    if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
        raise OSError(errno.EEXIST, "there is something else of that name", str(path))
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


def make_folder(path: pathlib.Path) -> None:
    """Makes a folder and those above it; raises OSError where it is a link to somewhere else."""
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link; name the folder itself", str(path))
    path.mkdir(parents=True, exist_ok=True)
