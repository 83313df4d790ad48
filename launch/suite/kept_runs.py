"""Finished runs as small folders: what a report reads of them, without checkpoints and logs.

They outlive the machine that made them: a report is made from them as from the runs themselves, and
a suite takes them back instead of running them again.
"""

import pathlib
import shutil
from collections.abc import Sequence

from launch.run_dir import RunDir
from launch.suite.plan import PlannedRun
from launch.suite.suite_run import is_finished
from report.atomic_file import make_folder, write_atomically
from report.metrics_file import Row, encode_row, read_rows

# Of the learner: its pace is computed from them. Evaluations are kept whole.
_PACE = ("time", "role", "frames", "updates")


def keep_finished(planned: Sequence[PlannedRun], folder: pathlib.Path) -> None:
    """Keeps the planned runs that are finished, but for those that are kept already."""
    for run in planned:
        kept = RunDir(folder / run.name)
        if is_finished(run.run_dir, run.config) and not is_finished(kept, run.config):
            make_folder(kept.root)
            rows = read_rows(run.run_dir.metrics_file, on_malformed=lambda error: None)
            lines = [encode_row(shown) for row in rows if (shown := _shown(row))]
            write_atomically(kept.config_file, run.run_dir.config_file.read_bytes())
            write_atomically(kept.metrics_file, b"".join(lines))  # last: now it is kept


def take_back(folder: pathlib.Path, out: pathlib.Path) -> int:
    """Brings runs that are kept, and nowhere else, to the suite's folder; returns how many."""
    missing = [
        RunDir(config.parent)
        for config in sorted(folder.glob("*/config.json"))
        if not (out / config.parent.name).exists()
    ]
    whole = [kept for kept in missing if all(map(_is_plain, _files(kept)))]
    for kept in whole:
        run_dir = RunDir(out / kept.root.name)
        make_folder(run_dir.root)
        for source, copy in zip(_files(kept), _files(run_dir), strict=True):
            shutil.copyfile(source, copy)
    return len(whole)


def _files(run_dir: RunDir) -> tuple[pathlib.Path, pathlib.Path]:
    return run_dir.config_file, run_dir.metrics_file


def _shown(row: Row) -> Row | None:
    if row.get("role") == "evaluator":
        return row
    if row.get("role") == "learner":
        return {name: row[name] for name in _PACE if name in row}
    return None


def _is_plain(path: pathlib.Path) -> bool:
    """A link may lead to what is not the suite's."""
    return path.is_file() and not (path.is_symlink() or path.parent.is_symlink())
