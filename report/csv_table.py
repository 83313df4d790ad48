"""A table of named columns, and how it is written as CSV."""

import csv
import io
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from report.atomic_file import write_atomically


class Table(NamedTuple):
    """Named columns; None is an empty cell."""

    name: str  # of its file, without suffix
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def write_csv(table: Table, folder: pathlib.Path) -> None:
    """Writes NAME.csv."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table.columns)
    writer.writerows([map(_cell, row) for row in table.rows])
    write_atomically(folder / f"{table.name}.csv", text.getvalue())


def _cell(value: Any) -> Any:
    """A name that a spreadsheet would take for a formula gets a mark before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in set("=+-@") else value
