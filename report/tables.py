"""The numbers behind the page as plain tables, written as CSV."""

import csv
import io
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from report.aggregates import AGGREGATES, Aggregates
from report.atomic_file import write_atomically
from report.final_scores import Cell
from report.methods import Methods


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


def score_table(cells: Iterable[Cell]) -> Table:
    """One row per game and method, beside the paper's Table 1."""
    columns = (
        "game", "method", "runs", "evaluations", "short_run", "return", "return_stderr",
        "human_normalized", "human_normalized_stderr", "paper", "paper_stderr", "difference",
    )  # fmt: skip
    rows = [
        (
            cell.game,
            cell.method,
            cell.num_runs,
            cell.evaluations,
            cell.short_run,
            *cell.raw,
            *(cell.normalized or (None, None)),
            *(cell.paper or (None, None)),
            cell.difference,
        )
        for cell in cells
    ]
    return Table("scores", columns, rows)


def run_table(methods: Methods) -> Table:
    """One row per run: how far it is, and how fast it went."""
    columns = (
        "run", "method", "game", "seed", "frames", "total_frames", "finished", "evaluations",
        "train_seconds", "frames_per_second",
    )  # fmt: skip
    rows = [
        (
            run.name,
            name,
            run.game,
            run.seed,
            run.frames,
            run.total_frames,
            run.finished,
            len(run.evaluations.frames),
            run.pace.seconds,
            run.pace.frames_per_second,
        )
        for name, runs in methods.items()
        for run in runs
    ]
    return Table("runs", columns, rows)


def evaluation_table(methods: Methods) -> Table:
    """Every evaluation of every run: the per-game curves."""
    columns = ("run", "method", "game", "seed", "frames", "return", "human_normalized")
    rows = [
        (run.name, name, run.game, run.seed, *point)
        for name, runs in methods.items()
        for run in runs
        for point in zip(*run.evaluations, strict=True)
    ]
    return Table("evaluations", columns, rows)


def aggregate_tables(aggregates: Aggregates) -> list[Table]:
    """One table per aggregate figure."""
    iqm = [
        (name, frames, runs, *values)
        for name, curve in aggregates.curves.items()
        for frames, runs, *values in zip(curve.frames, curve.num_runs, *curve.iqm, strict=True)
    ]
    final = [
        (name, kind, *values)
        for name, estimate in aggregates.final.items()
        for kind, *values in zip(AGGREGATES, *estimate, strict=True)
    ]
    profiles = [
        (name, *values)
        for name, profile in aggregates.profiles.items()
        for values in zip(aggregates.thresholds, *profile, strict=True)
    ]
    improvement = [
        (x, y, *(float(column[0]) for column in probability))
        for (x, y), probability in aggregates.improvement.items()
    ]
    return [
        Table("iqm", ("method", "frames", "runs", "iqm", "low", "high"), iqm),
        Table("aggregates", ("method", "aggregate", "value", "low", "high"), final),
        Table("profiles", ("method", "threshold", "fraction", "low", "high"), profiles),
        Table("improvement", ("x", "y", "probability", "low", "high"), improvement),
    ]
