"""metrics.jsonl of a run as columns, ready for NumPy, Matplotlib or `pandas.DataFrame`."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from launch.errors import InputError
from launch.run_dir import RunDir
from report.metrics_file import Row, read_rows


def read_metrics(run: str | os.PathLike[str], role: str | None = None) -> dict[str, np.ndarray]:
    """Columns by name, all of one length; docs/metrics.md says what they are.

    `role` chooses rows: "learner", "evaluator", "replay", "actor" for all actors, or "actor/0".
    Numbers are float64, NaN where a row has none; texts are objects, None where a row has none.
    """
    path = RunDir(pathlib.Path(run)).metrics_file
    try:
        rows = [row for row in read_rows(path) if role is None or _is_of(row, role)]
    except FileNotFoundError:
        raise InputError(f"'{run}' has no metrics.jsonl: no run has reported there") from None
    except (OSError, ValueError) as error:
        raise InputError(f"'{path}' cannot be read: {error}") from None
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _is_of(row: Row, role: str) -> bool:
    own = str(row.get("role"))
    return own == role or own.startswith(f"{role}/")


def _column(values: Sequence[Any]) -> np.ndarray:
    if any(isinstance(value, str) for value in values):
        return np.array(values, object)
    return np.array([np.nan if value is None else value for value in values], float)
