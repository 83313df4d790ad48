"""What runs leave behind, small enough to be kept: evaluations, pace and settings of each.

They are what a report is computed from, without the checkpoints, replay and logs beside them.
"""

import json
import pathlib
from collections.abc import Sequence

from report.atomic_file import make_folder, write_atomically
from report.csv_table import Table, write_csv
from report.methods import Methods, methods_of
from report.runs import References, Run, Warn, find_runs


def record_folder(
    folder: pathlib.Path, out: pathlib.Path, references: References, warn: Warn
) -> None:
    """Writes the records of all runs at or below a folder, as far as they are."""
    runs = find_runs(folder, references, warn)
    make_folder(out)
    write_records(runs, methods_of(runs, warn), out)


def write_records(runs: Sequence[Run], methods: Methods, out: pathlib.Path) -> None:
    """Writes evaluations.csv, runs.csv and configs.json."""
    for table in (run_table(methods), evaluation_table(methods)):
        write_csv(table, out)
    stored = {run.name: {"settings": run.settings, **run.facts} for run in runs}
    write_atomically(out / "configs.json", json.dumps(stored, indent=1) + "\n")


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
