"""Every figure of the report.

Those on all games together are drawn twice: for a page, and for the screen of a phone. Those on one
game are small enough for either.
"""

import functools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from report.aggregates import AGGREGATES, Aggregates, Estimate
from report.drawn_names import label
from report.figure_files import INK, STYLE, Drawn
from report.line_looks import Look
from report.plain_text import file_name
from report.runs import Run

_Arguments = ParamSpec("_Arguments")

_LABELS = {
    "median": "Median",
    "iqm": "IQM",
    "mean": "Mean",
    "optimality_gap": "Optimality gap (lower is better)",
}
_LEGEND_ROW = 0.2  # inches


class _Screen(NamedTuple):
    """What a figure is drawn for; inches, and letters of the standard size."""

    width: float
    name_letters: int  # of a name at the left, before it is broken into lines
    legend_letters: int  # of a whole line

    @property
    def narrow(self) -> bool:
        return self is _NARROW


_WIDE = _Screen(width=7.0, name_letters=40, legend_letters=80)
# 360 pixels of a phone with letters of 13.
_NARROW = _Screen(width=3.8, name_letters=16, legend_letters=40)


def _styled(draw: Callable[_Arguments, Drawn]) -> Callable[_Arguments, Drawn]:
    """Draws in the report's style: parts made late, such as a legend, need it as well."""

    @functools.wraps(draw)
    def draw_in_style(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Drawn:
        with plt.rc_context(STYLE):
            return draw(*args, **kwargs)

    return draw_in_style


@_styled
def draw_iqm(aggregates: Aggregates, looks: Mapping[str, Look]) -> Drawn:
    """IQM against frames."""

    def draw(screen: _Screen) -> Figure:
        figure, axes = _axes(screen, xlabel="frames", ylabel="IQM of human-normalized score")
        for name, curve in aggregates.curves.items():
            _line_with_band(axes, curve.frames, curve.iqm, looks[name], name)
        _count_frames(axes)
        _name_lines(figure, axes, screen)
        return figure

    caption = f"Interquartile mean over {_count(aggregates.games, 'game')}"
    return Drawn("iqm", caption, draw(_WIDE), draw(_NARROW))


@_styled
def draw_profiles(aggregates: Aggregates, looks: Mapping[str, Look]) -> Drawn:
    """Performance profiles: how many runs score above each threshold."""

    def draw(screen: _Screen) -> Figure:
        figure, axes = _axes(
            screen, xlabel="human-normalized score τ", ylabel="fraction of runs above τ"
        )
        for name, profile in aggregates.profiles.items():
            x = aggregates.thresholds
            _line_with_band(axes, x, profile, looks[name], name, marks=False)
        axes.set_ylim(-0.02, 1.02)
        _name_lines(figure, axes, screen)
        return figure

    caption = "Performance profiles of the final scores"
    return Drawn("profiles", caption, draw(_WIDE), draw(_NARROW))


@_styled
def draw_final(aggregates: Aggregates, looks: Mapping[str, Look]) -> Drawn:
    """Median, IQM, mean and optimality gap of the final scores."""
    names = list(aggregates.final)

    def draw(screen: _Screen) -> Figure:
        rows, columns = (4, 1) if screen.narrow else (2, 2)
        size = (screen.width, rows * (0.7 + _rows_height(names, screen)))
        figure, panels = plt.subplots(
            rows, columns, figsize=size, sharey=True, layout="constrained", squeeze=False
        )
        for index, (panel, kind) in enumerate(zip(panels.flat, AGGREGATES, strict=True)):
            for row, name in enumerate(names):
                _interval(panel, row, _at(aggregates.final[name], index), looks[name])
            panel.set_title(_LABELS[kind], fontsize=10)
            panel.use_sticky_edges = False  # a bar does not end at the frame
            panel.margins(x=0.2)
        _name_rows(panels[0, 0], names, screen)
        figure.supxlabel("human-normalized score", fontsize=9)
        return figure

    return Drawn("aggregates", "Aggregates of the final scores", draw(_WIDE), draw(_NARROW))


@_styled
def draw_improvement(aggregates: Aggregates, looks: Mapping[str, Look]) -> Drawn:
    """Probability of improvement of each method over each that follows it."""
    pairs = aggregates.improvement
    names = [f"{x} > {y}" for x, y in pairs]

    def draw(screen: _Screen) -> Figure:
        figure, axes = _axes(
            screen,
            xlabel="P(X > Y)" if screen.narrow else "P(X > Y): a run of X beats a run of Y",
            ylabel="",
            height=0.8 + _rows_height(names, screen),
        )
        axes.axvline(0.5, color=INK, linewidth=0.8, linestyle="--")
        for row, ((x, _), probability) in enumerate(pairs.items()):
            _interval(axes, row, _at(probability, 0), looks[x])
        _name_rows(axes, names, screen)
        axes.set_xlim(-0.02, 1.02)
        return figure

    return Drawn("improvement", "Probability of improvement", draw(_WIDE), draw(_NARROW))


@_styled
def draw_game(
    game: str,
    by_method: Mapping[str, Sequence[Run]],
    reference: tuple[float, float] | None,
    looks: Mapping[str, Look],
) -> Drawn:
    """All runs of a game, raw on the left axis and human-normalized on the right."""
    figure, axes = _axes(_NARROW, xlabel="frames", ylabel="return", title=game, height=2.7)
    for name, runs in by_method.items():
        for index, run in enumerate(runs):
            points = run.evaluations
            named = label(name) if index == 0 else None
            look = looks[name].line(len(points.frames))
            axes.plot(points.frames, points.returns, label=named, **look)
    if reference is not None:
        random, human = reference
        right = axes.secondary_yaxis(
            "right",
            functions=(
                lambda score: (score - random) / (human - random),
                lambda normalized: random + normalized * (human - random),
            ),
        )
        right.set_ylabel("human-normalized", color=INK)
        right.tick_params(colors=INK)
        right.spines["right"].set_color(INK)
    _count_frames(axes)
    _name_lines(figure, axes, _NARROW)
    return Drawn(f"games/{file_name(game)}", f"Evaluations of every run of {game}", figure)


def _axes(
    screen: _Screen, *, xlabel: str, ylabel: str, title: str = "", height: float | None = None
) -> tuple[Figure, Any]:
    size = (screen.width, height or (2.8 if screen.narrow else 3.8))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    return figure, axes


def _line_with_band(
    axes: Any, x: np.ndarray, estimate: Estimate, look: Look, name: str, *, marks: bool = True
) -> None:
    axes.plot(x, estimate.value, label=label(name), **look.line(len(x), marks=marks))
    axes.fill_between(x, estimate.low, estimate.high, color=look.color, alpha=0.2, linewidth=0)


def _name_lines(figure: Figure, axes: Any, screen: _Screen) -> None:
    """A legend: among the lines where there is room, else below them."""
    if not screen.narrow:
        axes.legend(loc="best")
        return
    handles, names = axes.get_legend_handles_labels()
    columns = 2 if max(map(len, names)) <= screen.name_letters else 1
    lines = [textwrap.fill(name, screen.legend_letters) for name in names]
    rows = sum(line.count("\n") + 1 for line in lines) / columns
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * np.ceil(rows))
    figure.legend(handles, lines, loc="outside lower center", ncols=columns, fontsize=9)


def _rows_height(names: Sequence[str], screen: _Screen) -> float:
    most_lines = max(len(textwrap.wrap(name, screen.name_letters)) for name in names)
    return len(names) * max(0.42, 0.12 + 0.16 * most_lines)


def _name_rows(axes: Any, names: Sequence[str], screen: _Screen) -> None:
    axes.set_yticks(range(len(names)), [textwrap.fill(name, screen.name_letters) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)


def _interval(axes: Any, row: int, estimate: Estimate, look: Look) -> None:
    if np.isfinite(estimate.low):
        axes.barh(
            row, estimate.high - estimate.low, left=estimate.low, height=0.55, color=look.color,
            alpha=0.35,
        )  # fmt: skip
    axes.plot([estimate.value] * 2, [row - 0.28, row + 0.28], color=look.color, linewidth=2.5)


def _at(estimate: Estimate, index: int) -> Estimate:
    return Estimate(*(column[index] for column in estimate))


def _count_frames(axes: Any) -> None:
    axes.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    axes.set_xlim(left=0)


def _count(things: Sequence[Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"
