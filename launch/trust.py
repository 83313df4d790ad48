"""Whose a run directory is: what someone else may have written to is not continued, nor played.

Commands that only read files and show them (`list`, `report`, `compare`) take anyone's folder.
"""

import os
import pathlib
import stat
from collections.abc import Collection

from launch.errors import InputError

_OTHERS_WRITE = 0o022
_OTHERS_ENTER = 0o011


def check_folder(root: pathlib.Path) -> None:
    """Refuses a run directory that someone else could have put something into."""
    try:
        found = root.stat()
    except OSError:
        return  # whoever reads from it says what is missing
    _check_owner(f"run directory '{root}'", found)
    if found.st_mode & _OTHERS_WRITE:
        raise InputError(
            f"run directory '{root}' can be written by others (mode "
            f"{stat.S_IMODE(found.st_mode):o}); make sure of what is in it, then chmod 700"
        )


def check_contents(root: pathlib.Path, *, folders: Collection[str], files: Collection[str]) -> None:
    """Refuses what lies in a run directory and is no run's, or is not its owner's alone.

    A folder of the run may be a link to one of the owner's own, on a larger disk say. A file may
    not: what is written to it would go wherever an unpacked archive says.
    """
    for names, is_kind, kind in (
        (folders, os.path.isdir, "folder"),
        (files, os.path.isfile, "file"),
    ):
        for path in (root / name for name in names):
            if os.path.lexists(path) and not is_kind(path):
                raise InputError(f"'{path}' is not a {kind}; this is no run of this version")
    exposed = root.is_dir() and bool(root.stat().st_mode & _OTHERS_ENTER)
    for path in _entries(root):
        # Beyond a link others may enter, whatever the mode of the run directory.
        _check_entry(path, exposed=exposed or path.is_symlink(), link_to_folder_is_fine=True)
        for inner in _entries(path):
            _check_entry(inner, exposed=exposed or path.is_symlink())


def _entries(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _check_entry(
    path: pathlib.Path, *, exposed: bool, link_to_folder_is_fine: bool = False
) -> None:
    if path.is_symlink() and not (link_to_folder_is_fine and path.is_dir()):
        raise InputError(
            f"'{path}' is a symbolic link; put in its place the file that it leads to, if you "
            "know where that came from"
        )
    try:
        found = path.stat()
    except FileNotFoundError:
        return  # of a run that is alive, and writes its files anew
    if exposed:
        _check_owner(f"'{path}'", found)
        if found.st_mode & _OTHERS_WRITE:
            raise InputError(
                f"'{path}' can be written by others (mode {stat.S_IMODE(found.st_mode):o}); make "
                "sure of what is in it, then chmod go-w, or chmod 700 the run directory"
            )


def _check_owner(name: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise InputError(
            f"{name} belongs to user {found.st_uid}, not to you (user {os.geteuid()}); a run is "
            "continued, stopped and played by its owner only"
        )
