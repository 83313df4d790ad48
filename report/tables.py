"""The numbers that the report computes from runs, as plain tables."""

from collections.abc import Iterable

from report.aggregates import AGGREGATES, Aggregates, best_of
from report.csv_table import Table
from report.final_scores import Cell


def score_table(cells: Iterable[Cell]) -> Table:
    """One row per game and method, beside the paper's Table 1."""
    columns = (
        "game", "method", "runs", "evaluations", "short_run", "return", "return_stderr",
        "human_normalized", "human_normalized_stderr", "paper", "paper_stderr", "difference",
        "best",
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
            cell.best,
        )
        for cell in cells
    ]
    return Table("scores", columns, rows)


def aggregate_tables(aggregates: Aggregates) -> list[Table]:
    """One table per aggregate figure."""
    iqm = [
        (name, frames, runs, *values)
        for name, curve in aggregates.curves.items()
        for frames, runs, *values in zip(curve.frames, curve.num_runs, *curve.iqm, strict=True)
    ]
    best = [best_of(aggregates.final, index) for index in range(len(AGGREGATES))]
    final = [
        (name, kind, *values, name in best[index])
        for name, estimate in aggregates.final.items()
        for index, (kind, *values) in enumerate(zip(AGGREGATES, *estimate, strict=True))
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
        Table("aggregates", ("method", "aggregate", "value", "low", "high", "best"), final),
        Table("profiles", ("method", "threshold", "fraction", "low", "high"), profiles),
        Table("improvement", ("x", "y", "probability", "low", "high"), improvement),
    ]
