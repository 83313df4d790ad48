"""The folder of a suite, and what it says of itself in suite.json."""

import json
import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from launch.engines.record import new_run_id
from launch.errors import InputError
from launch.suite.plan import PlannedRun
from report.atomic_file import write_atomically
from report.json_file import read_json

SUITE_FILE = "suite.json"
_SUITE_ID = re.compile(r"[0-9a-z]{1,32}")


class KnownRuns(NamedTuple):
    """What is stored about a suite in its folder."""

    runs: list[str]  # names of all its runs, so that a report can name those that are missing
    suite_id: str  # of its jobs


def prepare_folder(out: pathlib.Path, planned: Sequence[PlannedRun]) -> KnownRuns:
    """Makes the folder, and adds the planned runs to those it is known for."""
    path = out / SUITE_FILE
    before = _read(path)
    known = before._replace(
        runs=list(dict.fromkeys([*before.runs, *(run.name for run in planned)]))
    )
    try:
        (out / "logs").mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(known._asdict()) + "\n")
    except OSError as error:
        raise InputError(f"cannot write '{out}': {error.strerror}") from None
    return known


def _read(path: pathlib.Path) -> KnownRuns:
    try:
        stored = read_json(path)
        runs, suite_id = list(stored["runs"]), stored["suite_id"]
        if not all(isinstance(name, str) for name in runs) or not _SUITE_ID.fullmatch(suite_id):
            raise ValueError("its runs or its suite_id are not of the right kind")
    except FileNotFoundError:
        return KnownRuns([], new_run_id())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}; remove it if no job of this suite is in a queue"
        ) from None
    return KnownRuns(runs, suite_id)
