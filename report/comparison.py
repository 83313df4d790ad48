"""Learning curves of a few runs, side by side: as text for a terminal, and as PNG.

Runs of one game are compared by raw return, runs of different games by human-normalized score.
"""

import io
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import plotext

from report.atomic_file import write_atomically
from report.drawn_names import NAMES_ARE_TEXT, label
from report.line_looks import looks_of
from report.plain_text import plain
from report.runs import References, Run, Warn, find_runs, read_run

_MAX_COLUMNS, _ROWS = 100, 22
_POINTS = 40 * _MAX_COLUMNS  # on a curve; no gap where it is steep
_STRETCHES = 25  # of some columns each
_MARKS = "*o+x#@"
_TERMINAL_COLORS = ("red", "blue", "green", "orange", "magenta", "cyan")


class NothingToCompareError(ValueError):
    """Runs that cannot be put in one picture, and why."""


class _Curves(NamedTuple):
    label: str  # of the vertical axis
    lines: Sequence[tuple[str, np.ndarray, np.ndarray]]  # name, frames, scores


def compare_runs(
    paths: Sequence[pathlib.Path],
    out: pathlib.Path | None,
    *,
    references: References,
    warn: Warn,
    columns: int,
    color: bool,
) -> str:
    """Returns the picture for the terminal and a line per run; writes it as PNG if asked to.

    A path is a run, or a folder that stands for all runs below it.
    """
    found = [run for path in paths for run in _runs_at(path, references, warn)]
    runs = list({run.path.resolve(): run for run in found}.values())
    with_curve = [run for run in runs if len(run.evaluations.frames)]
    for run in runs:
        if run not in with_curve:
            warn(f"{run.path / 'metrics.jsonl'}: no evaluation yet; this run is left out")
    if not with_curve:
        raise NothingToCompareError(
            "this run has no evaluation yet"
            if len(runs) == 1
            else f"none of these {len(runs)} runs has an evaluation yet"
        )
    curves = _curves(with_curve)
    if out is not None:
        _draw(curves, out)
    picture = _in_terminal(curves, min(columns, _MAX_COLUMNS), color=color)
    return "\n".join([picture, *(_line(run) for run in with_curve)])


def _runs_at(path: pathlib.Path, references: References, warn: Warn) -> list[Run]:
    config = path / "config.json"
    if config.exists():
        # One that was asked for by name is not left out in silence.
        try:
            return [read_run(path, references, warn)]
        except ValueError as error:
            raise NothingToCompareError(f"{config}: {error}") from None
    runs = find_runs(path, references, warn)
    if not runs:
        raise NothingToCompareError(f"'{path}' holds no run: no config.json in it or below it")
    return runs


def _curves(runs: Sequence[Run]) -> _Curves:
    named = list(zip(_names(runs), (run.evaluations for run in runs), strict=True))
    if len({run.game for run in runs}) == 1:
        lines = [(name, points.frames, points.returns) for name, points in named]
        return _Curves(f"return on {runs[0].game}", lines)
    unscored = [run for run in runs if not np.isfinite(run.evaluations.normalized).all()]
    if unscored:
        raise NothingToCompareError(
            f"{unscored[0].path / 'config.json'}: game '{unscored[0].game}' has no random and "
            "human scores, so it cannot be compared with another game"
        )
    lines = [(name, points.frames, points.normalized) for name, points in named]
    return _Curves("human-normalized score", lines)


def _names(runs: Sequence[Run]) -> list[str]:
    """Folder names, or whole paths where those are the same."""
    short = [run.name for run in runs]
    return short if len(set(short)) == len(short) else [plain(str(run.path)) for run in runs]


@matplotlib.rc_context(dict(NAMES_ARE_TEXT))
def _draw(curves: _Curves, out: pathlib.Path) -> None:
    picture = io.BytesIO()
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    looks = looks_of(name for name, _, _ in curves.lines)
    for name, frames, scores in curves.lines:
        axes.plot(frames, scores, label=label(name), **looks[name].line(len(frames)))
    axes.set(xlabel="frames", ylabel=curves.label)
    axes.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    axes.grid(alpha=0.3)
    axes.legend(loc="best", frameon=False, handlelength=2.8)
    figure.savefig(picture, dpi=150, format="png")
    plt.close(figure)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, picture.getvalue())


def _in_terminal(curves: _Curves, columns: int, *, color: bool) -> str:
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(columns, _ROWS)
    drawn = list(_in_turns(curves))
    # All of every curve, and then its own stretches again: where curves coincide they take turns.
    for only_own in (False, True):
        for index, (name, x, y, own) in enumerate(drawn):
            plotext.scatter(
                x[own | (not only_own)].tolist(),
                y[own | (not only_own)].tolist(),
                label=None if only_own else name,
                # Without colors it is the mark that tells curves apart.
                marker="braille" if color else _MARKS[index % len(_MARKS)],
                color=_TERMINAL_COLORS[index % len(_TERMINAL_COLORS)],
            )
    values = np.concatenate([scores for _, _, scores in curves.lines])
    room = max(float(np.ptp(values)) * 0.05, 0.01)
    plotext.ylim(float(values.min()) - room, float(values.max()) + room)
    plotext.xlabel("frames")
    plotext.title(curves.label)
    picture = str(plotext.build())
    return picture if color else str(plotext.uncolorize(picture))


def _in_turns(curves: _Curves) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Name, points close together on a curve, and which of them lie in stretches of its own."""
    first = min(float(frames[0]) for _, frames, _ in curves.lines)
    last = max(float(frames[-1]) for _, frames, _ in curves.lines)
    places = np.linspace(first, last, _POINTS)
    stretch = max(last - first, 1.0) / _STRETCHES
    for index, (name, frames, scores) in enumerate(curves.lines):
        x = np.union1d(frames, places[(places > frames[0]) & (places < frames[-1])])
        own = (x - first) // stretch % len(curves.lines) == index
        yield name, x, np.interp(x, frames, scores), own


def _line(run: Run) -> str:
    best = run.evaluations.returns.max()
    return (
        f"{plain(str(run.path))}: {run.algorithm} on {run.game}, seed {run.seed}, "
        f"{run.frames:,} of {run.total_frames:,} frames, "
        f"last evaluation {run.evaluations.returns[-1]:,.1f}, best {best:,.1f}"
    )
