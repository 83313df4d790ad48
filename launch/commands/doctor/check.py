"""What a check of the doctor returns."""

import pathlib
from typing import NamedTuple

# Where the project was installed from, if it runs from its source tree.
SOURCE_TREE = pathlib.Path(__file__).parents[3]
PYPROJECT = SOURCE_TREE / "pyproject.toml"
SETUP = "run `make setup`" if PYPROJECT.exists() else "run `make setup` in a checkout of Vantage"


class Check(NamedTuple):
    """One thing looked at. `ok` is None where a run works but something is worth knowing."""

    name: str
    ok: bool | None
    found: str
    fix: str = ""
