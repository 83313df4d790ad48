"""`vantage list [DIR]`: the runs of a folder in a table, from their files.

A folder may hold anything: what cannot be read of a run is left open, and a run that does not say
what was run is named with the reason.
"""

import pathlib
from typing import NamedTuple

from rich.table import Table

from launch.engines.record import load_engine
from launch.errors import ExitCode, InputError
from launch.monitor.follow import recent_rows
from launch.monitor.snapshot import Evaluation, RunState
from launch.monitor.units import UNKNOWN, format_count
from launch.run_dir import RunDir
from launch.supervise.status_file import HostStatus, read_statuses
from launch.terminal import make_console, say, warn
from report.json_file import json_text
from report.plain_text import plain
from report.run_config import DamagedConfigError, RunConfig, read_run_config
from report.runs import run_folders


class Listed(NamedTuple):
    """One run, as of its files."""

    path: pathlib.Path
    state: str
    config: RunConfig
    frames: int
    evaluation: Evaluation | None


def list_runs(folder: pathlib.Path, as_json: bool) -> ExitCode:
    """Prints the runs at or below a folder."""
    if not folder.is_dir():
        raise InputError(f"'{folder}' is not a folder; give the one your runs are in")
    found = [run for path in run_folders(folder) if (run := _look_at(path)) is not None]
    statuses = read_statuses([RunDir(run.path) for run in found])
    runs = [_with_state(run, status) for run, status in zip(found, statuses, strict=True)]
    if as_json:
        print(json_text([_as_json(run) for run in runs]))
        return ExitCode.DONE
    if not runs:
        say(f"no runs in {folder}")
        return ExitCode.DONE
    make_console().print(_table(runs, folder))
    return ExitCode.DONE


def _look_at(path: pathlib.Path) -> Listed | None:
    try:
        config = read_run_config(path / "config.json")
    except DamagedConfigError as error:
        warn(f"{path / 'config.json'}: {error}; this run is left out")
        return None
    state = RunState(total_frames=config.total_frames, target_samples_per_insert=1.0)
    run_dir = RunDir(path)
    try:
        state.add(recent_rows(run_dir.metrics_file, lambda malformed: None))
    except OSError as error:
        warn(f"{run_dir.metrics_file} cannot be read: {error.strerror}")
    seen = state.snapshot()
    return Listed(path, UNKNOWN, config, seen.frames, seen.evaluation)


def _with_state(run: Listed, status: HostStatus | None) -> Listed:
    """A run that was copied in parts says nothing of its state."""
    if status is not None:
        return run._replace(state=status.state)
    if run.frames:
        return run
    return run._replace(state="in a cluster" if _in_cluster(run.path) else "not started")


def _in_cluster(path: pathlib.Path) -> bool:
    """Whether the run's files are elsewhere, where `vantage status` looks for them."""
    try:
        record = load_engine(RunDir(path))
    except InputError:
        return False  # a stranger's file; the list goes on
    return record is not None and record.engine == "kubernetes"


def _as_json(run: Listed) -> dict[str, object]:
    return {
        "run": str(run.path),
        "state": run.state,
        "game": run.config.game,
        "algorithm": run.config.algorithm,
        "seed": run.config.seed,
        "frames": run.frames,
        "total_frames": run.config.total_frames,
        "evaluation": None if run.evaluation is None else run.evaluation._asdict(),
    }


def _table(runs: list[Listed], folder: pathlib.Path) -> Table:
    table = Table(
        "run", "state", "game", "algorithm", "seed", "frames", "last evaluation", box=None
    )
    for run in runs:
        scored = run.evaluation
        table.add_row(
            plain(str(run.path.relative_to(folder) if run.path != folder else folder)),
            run.state,
            run.config.game,
            run.config.algorithm,
            str(run.config.seed),
            f"{format_count(run.frames)} of {format_count(run.config.total_frames)}",
            UNKNOWN
            if scored is None
            else f"{scored.mean_return:,.1f} at {format_count(scored.frames)}",
        )
    return table
