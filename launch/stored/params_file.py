"""The file of a folder that holds one set of parameters: `best/` and `candidate/` of a run."""

import pathlib


def params_file(folder: pathlib.Path) -> pathlib.Path:
    """The file in that folder of a run."""
    return folder / "params.npz"
