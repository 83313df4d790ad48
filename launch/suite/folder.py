"""The folder of a suite, and what it says of itself in suite.json."""

import json
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

from launch.engines.record import new_run_id
from launch.errors import InputError
from launch.run_dir import write_atomically
from launch.suite.plan import PlannedRun

SUITE_FILE = "suite.json"


class KnownRuns(NamedTuple):
    """What a suite's folder says of itself."""

    runs: list[str]  # names of all that it is to hold, for a report on what is not there yet
    suite_id: str  # of its jobs


def prepare_folder(out: pathlib.Path, planned: Sequence[PlannedRun]) -> KnownRuns:
    """Makes the folder, and adds what is planned to what it is to hold."""
    path = out / SUITE_FILE
    try:
        stored = json.loads(path.read_text())
        before = KnownRuns(list(stored["runs"]), stored["suite_id"])
    except (OSError, ValueError, KeyError, TypeError):
        before = KnownRuns([], new_run_id())
    known = before._replace(
        runs=list(dict.fromkeys([*before.runs, *(run.name for run in planned)]))
    )
    try:
        (out / "logs").mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(known._asdict()) + "\n")
    except OSError as error:
        raise InputError(f"cannot write '{out}': {error.strerror}") from None
    return known
