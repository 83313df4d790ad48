"""Every figure of the report, drawn once and written as SVG (page, file) and PNG (file).

The page shows its figures inline, on light and on dark: they have no background, and whatever is
text or frame has one ink, which the page replaces by its own text color.
"""

import functools
import html
import io
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from report.aggregates import AGGREGATES, Aggregates, Estimate
from report.atomic_file import make_folder, write_atomically
from report.drawn_names import NAMES_ARE_TEXT, label
from report.methods import Methods
from report.plain_text import file_name
from report.runs import Run

_Arguments = ParamSpec("_Arguments")

_INK = "#1f2329"
# Apart for the color-blind, and of a lightness that stands out on white and on near-black.
_COLORS = ("#d1495b", "#2f80c9", "#2f9e6e", "#b5832a", "#8a63d2", "#5c8a8a", "#b0568f", "#7a7f87")
_STYLE = {
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#808890",
    "grid.alpha": 0.25,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 10,
    "legend.frameon": False,
    **NAMES_ARE_TEXT,
    # As text: smaller, searchable, and in the page's own font.
    "svg.fonttype": "none",
    "font.family": "sans-serif",
}
_LABELS = {
    "median": "Median",
    "iqm": "IQM",
    "mean": "Mean",
    "optimality_gap": "Optimality gap (lower is better)",
}


class Drawn(NamedTuple):
    """A figure, and a caption that screen readers read out too."""

    name: str  # of its files, without suffix
    caption: str
    figure: Figure


def _styled(draw: Callable[_Arguments, Drawn]) -> Callable[_Arguments, Drawn]:
    """Draws in the report's style: parts made late, such as a legend, need it as well."""

    @functools.wraps(draw)
    def draw_in_style(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Drawn:
        with plt.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return draw_in_style


def color_of(methods: Methods) -> dict[str, str]:
    """One color per method, the same in all figures."""
    return {name: _COLORS[i % len(_COLORS)] for i, name in enumerate(methods)}


@_styled
def draw_iqm(aggregates: Aggregates, colors: dict[str, str]) -> Drawn:
    """IQM against frames."""
    figure, axes = _axes(xlabel="frames", ylabel="IQM of human-normalized score")
    for name, curve in aggregates.curves.items():
        _line_with_band(axes, curve.frames, curve.iqm, colors[name], name)
    _count_frames(axes)
    axes.legend(loc="best")
    return Drawn("iqm", f"Interquartile mean over {_count(aggregates.games, 'game')}", figure)


@_styled
def draw_profiles(aggregates: Aggregates, colors: dict[str, str]) -> Drawn:
    """Performance profiles: how many runs score above each threshold."""
    figure, axes = _axes(xlabel="human-normalized score τ", ylabel="fraction of runs above τ")
    for name, profile in aggregates.profiles.items():
        _line_with_band(axes, aggregates.thresholds, profile, colors[name], name, marker="")
    axes.set_ylim(-0.02, 1.02)
    axes.legend(loc="best")
    return Drawn("profiles", "Performance profiles of the final scores", figure)


@_styled
def draw_final(aggregates: Aggregates, colors: dict[str, str]) -> Drawn:
    """Median, IQM, mean and optimality gap of the final scores."""
    names = list(aggregates.final)
    height = 2 * (0.8 + 0.4 * len(names))
    figure, panels = plt.subplots(2, 2, figsize=(7, height), sharey=True, layout="constrained")
    for index, (panel, kind) in enumerate(zip(panels.flat, AGGREGATES, strict=True)):
        for row, name in enumerate(names):
            _interval(panel, row, _at(aggregates.final[name], index), colors[name])
        panel.set_title(_LABELS[kind], fontsize=10)
        panel.use_sticky_edges = False  # a bar does not end at the frame
        panel.margins(x=0.2)
    panels[0, 0].set_yticks(range(len(names)), names)
    panels[0, 0].set_ylim(len(names) - 0.4, -0.6)
    figure.supxlabel("human-normalized score", fontsize=9)
    return Drawn("aggregates", "Aggregates of the final scores", figure)


@_styled
def draw_improvement(aggregates: Aggregates, colors: dict[str, str]) -> Drawn:
    """Probability of improvement of each method over each that follows it."""
    pairs = aggregates.improvement
    figure, axes = _axes(
        xlabel="P(X > Y): a run of X beats a run of Y", ylabel="", height=1.0 + 0.45 * len(pairs)
    )
    axes.axvline(0.5, color=_INK, linewidth=0.8, linestyle="--")
    for row, ((x, _), probability) in enumerate(pairs.items()):
        _interval(axes, row, _at(probability, 0), colors[x])
    axes.set_yticks(range(len(pairs)), [f"{x} > {y}" for x, y in pairs])
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.set_xlim(-0.02, 1.02)
    return Drawn("improvement", "Probability of improvement", figure)


@_styled
def draw_game(
    game: str,
    by_method: Mapping[str, Sequence[Run]],
    reference: tuple[float, float] | None,
    colors: dict[str, str],
) -> Drawn:
    """All runs of a game, raw on the left axis and human-normalized on the right."""
    figure, axes = _axes(xlabel="frames", ylabel="return", title=game, height=3.2, width=5.2)
    for name, runs in by_method.items():
        for index, run in enumerate(runs):
            points = run.evaluations
            named = label(name) if index == 0 else None
            axes.plot(
                points.frames, points.returns, color=colors[name], label=named, alpha=0.85,
                linewidth=1.4, marker="o", markersize=2.5,
            )  # fmt: skip
    if reference is not None:
        random, human = reference
        right = axes.secondary_yaxis(
            "right",
            functions=(
                lambda score: (score - random) / (human - random),
                lambda normalized: random + normalized * (human - random),
            ),
        )
        right.set_ylabel("human-normalized", color=_INK)
        right.tick_params(colors=_INK)
        right.spines["right"].set_color(_INK)
    _count_frames(axes)
    axes.legend(loc="best", fontsize=8)
    return Drawn(f"games/{file_name(game)}", f"Evaluations of every run of {game}", figure)


def write_files(drawn: Drawn, folder: pathlib.Path) -> str:
    """Writes NAME.svg and NAME.png on white; returns the figure for the page."""
    path = folder / drawn.name
    make_folder(path.parent)
    picture = io.BytesIO()
    # The salt keeps names inside the drawing apart from those of other figures on the page, and
    # the same from one report to the next.
    with plt.rc_context({**_STYLE, "svg.hashsalt": drawn.name}):
        drawn.figure.savefig(picture, format="png", dpi=150)
        # Laid out already; doing it again for the other format is most of the time.
        drawn.figure.set_layout_engine("none")
        text = io.StringIO()
        drawn.figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    plt.close(drawn.figure)
    svg = text.getvalue()
    write_atomically(path.with_suffix(".png"), picture.getvalue())
    write_atomically(path.with_suffix(".svg"), _on_white(svg))
    return _for_page(svg, drawn)


def _on_white(svg: str) -> str:
    end_of_tag = svg.index(">", svg.index("<svg")) + 1
    background = '\n <rect width="100%" height="100%" fill="#ffffff"/>'
    return svg[:end_of_tag] + background + svg[end_of_tag:]


def _for_page(svg: str, drawn: Drawn) -> str:
    body = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    described = f'<svg role="img" aria-label="{html.escape(drawn.caption)}" '
    return body.replace("<svg ", described, 1)


def _axes(
    *, xlabel: str, ylabel: str, title: str = "", width: float = 7.0, height: float = 3.8
) -> tuple[Figure, Any]:
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    return figure, axes


def _line_with_band(
    axes: Any, x: np.ndarray, estimate: Estimate, color: str, name: str, marker: str = "o"
) -> None:
    # A single point is seen only with a marker.
    shown = marker if len(x) < 60 else ""
    axes.plot(x, estimate.value, color=color, label=label(name), marker=shown, markersize=2.5)
    axes.fill_between(x, estimate.low, estimate.high, color=color, alpha=0.2, linewidth=0)


def _interval(axes: Any, row: int, estimate: Estimate, color: str) -> None:
    if np.isfinite(estimate.low):
        axes.barh(
            row, estimate.high - estimate.low, left=estimate.low, height=0.55, color=color,
            alpha=0.35,
        )  # fmt: skip
    axes.plot([estimate.value] * 2, [row - 0.28, row + 0.28], color=color, linewidth=2.5)


def _at(estimate: Estimate, index: int) -> Estimate:
    return Estimate(*(column[index] for column in estimate))


def _count_frames(axes: Any) -> None:
    axes.xaxis.set_major_formatter(matplotlib.ticker.EngFormatter(sep=""))
    axes.set_xlim(left=0)


def _count(things: Sequence[Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"
