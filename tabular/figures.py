"""The figures, drawn from the summaries alone: lines are means, bands standard deviations.

Readings of the gradient stand side by side. A dotted line marks the fixed budget of updates; the
right edge is where everything has settled.
"""

import contextlib
import pathlib
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from types import MappingProxyType
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from tabular.summary import Summary

_DPI = 160
_STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.alpha": 0.25,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}


class _Style(NamedTuple):
    color: str
    marker: str
    dashes: str


# Colors of Okabe and Ito: told apart by color-blind readers. Markers and dashes for print.
_STYLES = (
    _Style("#0072B2", "o", "-"),
    _Style("#D55E00", "s", "-"),
    _Style("#009E73", "^", "--"),
    _Style("#555555", "v", "--"),
    _Style("#CC79A7", "P", "-."),
    _Style("#E69F00", "X", "-."),
    _Style("#56B4E9", "D", ":"),
)
_BLUE, _ORANGE, _GREEN, _GRAY, *_, _SKY = _STYLES
# Learner and measure -> how the line is called and drawn.
_Lines = Mapping[tuple[str, str], tuple[str, _Style]]
Summaries = Mapping[str, Summary]  # reading of the gradient -> its numbers
Drawing = Callable[[Summaries, pathlib.Path], None]


def draw_control_curves(summaries: Summaries, out: pathlib.Path) -> None:
    """Figure 1: performance of the greedy policy over updates."""
    with _page(columns=len(summaries)) as (canvas, panels):
        for axes, (gradient, summary) in zip(panels[0], summaries.items(), strict=True):
            control = summary["control"]
            condition = control["epsilons"].index(control["epsilon"])
            for (name, values), style in zip(control["share_of_optimal"].items(), cycle(_STYLES)):
                _line(axes, control["updates"], _column(values, condition), name, style)
            _updates_axis(axes, summary, "control")
            axes.set_title(f"{gradient}, ε = {control['epsilon']:g}, {_seeds(summary)}")
        lowest = min(_lowest(summary["control"]) for summary in summaries.values())
        panels[0][0].set_ylim(lowest - 0.01, 1.01)
        panels[0][0].set_ylabel("performance / optimal performance")
        panels[0][0].legend(loc="lower right")
        canvas.savefig(out, dpi=_DPI)


def draw_performance_by_epsilon(summaries: Summaries, out: pathlib.Path) -> None:
    """Figure 2: performance over epsilon, after the budget (top) and at convergence."""
    with _page(columns=len(summaries), rows=2) as (canvas, panels):
        for column, (gradient, summary) in enumerate(summaries.items()):
            control, budget = summary["control"], summary["budget_updates"]
            for row, point in enumerate((control["updates"].index(budget), -1)):
                axes = panels[row][column]
                _draw_epsilons(axes, control, point)
                when = f"after {budget:,} updates" if row == 0 else "at convergence"
                axes.set_title(f"{gradient}, {when}, {_seeds(summary)}")
            axes.set_xlabel("ε: share of the uniform policy in μ")
        for row in panels:
            row[0].set_ylabel("performance / optimal performance")
        panels[0][0].legend(loc="lower right")
        canvas.savefig(out, dpi=_DPI)


def _draw_epsilons(axes: Any, control: Summary, point: int) -> None:
    shown = [control["epsilons"].index(epsilon) for epsilon in control["shown_epsilons"]]
    for (name, values), style in zip(control["share_of_optimal"].items(), cycle(_STYLES)):
        picked = {key: [rows[point][i] for i in shown] for key, rows in values.items()}
        _line(axes, control["shown_epsilons"], picked, name, style, mark_every=1)


def draw_advantage_error(summaries: Summaries, out: pathlib.Path) -> None:
    """Figure 3: error of the advantage over updates, a panel for each data budget."""
    lines = {
        ("va", "advantage"): (r"VA-learning: A from $A^\pi$, as printed", _BLUE),
        ("va", "own_limit"): (r"VA-learning: A from $A_\mu^\pi$, its limit", _ORANGE),
        ("td", "advantage"): (r"TD: Q − πQ from $A^\pi$", _GRAY),
        ("va", "centered"): (r"VA-learning: A − πA from $A^\pi$", _SKY),
    }
    _draw_budgets(summaries, lines, "distance to the advantage", out, floor=True)


def draw_q_error(summaries: Summaries, out: pathlib.Path) -> None:
    """Figure 4: error of Q over updates, a panel for each data budget."""
    lines = {("va", "q"): ("VA-learning: V + A", _BLUE), ("td", "q"): ("TD: Q", _GRAY)}
    _draw_budgets(summaries, lines, r"$\|\hat Q_t - Q^\pi\|_2$", out, floor=False)


def draw_advantage_norms(summaries: Summaries, out: pathlib.Path) -> None:
    """Figure 5: squared advantage norms over updates."""
    lines = {
        "dueling_uniform": ("dueling, under u", _GREEN),
        "dueling_mu": ("dueling, under μ", _BLUE),
        "behavior_dueling_mu": ("behavior_dueling, under μ", _ORANGE),
    }
    with _page(columns=len(summaries)) as (canvas, panels):
        for axes, (gradient, summary) in zip(panels[0], summaries.items(), strict=True):
            control = summary["control"]
            for name, (label, style) in lines.items():
                _line(axes, control["updates"], control["norms"][name], label, style)
            _updates_axis(axes, summary, "control")
            axes.set_title(f"{gradient}, ε = {control['epsilon']:g}, {_seeds(summary)}")
            axes.set_ylim(bottom=0)
        panels[0][0].set_ylabel("mean of (f(x, a) − f(x, ν))² over samples")
        panels[0][0].legend(loc="lower right")
        canvas.savefig(out, dpi=_DPI)


FIGURES: Mapping[str, Drawing] = MappingProxyType(
    {
        "control_curves": draw_control_curves,
        "performance_by_epsilon": draw_performance_by_epsilon,
        "advantage_error": draw_advantage_error,
        "q_error": draw_q_error,
        "advantage_norms": draw_advantage_norms,
    }
)


def draw_sampled(sampled: Summary, out: pathlib.Path) -> None:
    """Algorithm 1 along a trajectory, beside Q-learning on the same samples."""
    with _page(columns=1) as (canvas, panels):
        axes = panels[0][0]
        for (name, values), style in zip(sampled["share_of_optimal"].items(), cycle(_STYLES)):
            _line(axes, sampled["steps"], values, name, style)
        axes.set(xlabel="steps of one trajectory", ylabel="performance / optimal performance")
        axes.set_title(f"One sample at a time, ε = {sampled['epsilon']:g}")
        axes.legend(loc="lower right")
        canvas.savefig(out, dpi=_DPI)


def _draw_budgets(
    summaries: Summaries, lines: _Lines, label: str, out: pathlib.Path, *, floor: bool
) -> None:
    columns = len(next(iter(summaries.values()))["evaluation"]["budgets"])
    size = (2.6 * columns + 0.6, 2.6 * len(summaries) + 0.7)
    with _page(columns=columns, rows=len(summaries), size=size) as (canvas, panels):
        for row, (gradient, summary) in zip(panels, summaries.items(), strict=True):
            evaluation = summary["evaluation"]
            for i, axes in enumerate(row):
                for (learner, measure), (text, style) in lines.items():
                    values = _column(evaluation["errors"][learner][measure], i)
                    _line(axes, evaluation["updates"], values, text, style)
                if floor:
                    height = evaluation["floor_of_va"]["mean"]
                    text = r"$\|A_\mu^\pi - A^\pi\|_2$"
                    axes.axhline(height, color=_BLUE.color, lw=0.9, ls=(0, (1, 2)), label=text)
                _updates_axis(axes, summary, "evaluation")
                axes.set_title(f"{gradient}, {evaluation['budgets'][i]} trajectories")
                axes.set_ylim(bottom=0)
            row[0].set_ylabel(label)
        handles = panels[0][0].get_legend_handles_labels()
        canvas.legend(*handles, loc="outside lower center", ncols=3)
        canvas.savefig(out, dpi=_DPI)


def _updates_axis(axes: Any, summary: Summary, part: str) -> None:
    """Updates on a logarithmic axis, from the first point to the last, the budget marked."""
    updates = summary[part]["updates"]
    axes.set_xscale("log")
    axes.set_xlim(updates[1], updates[-1])
    axes.axvline(summary["budget_updates"], color="#999999", lw=0.9, ls=":")
    axes.set_xlabel("updates")


def _lowest(control: Summary) -> float:
    """The lowest point of the bands after the start, where tables of zeros would set the scale."""
    condition = control["epsilons"].index(control["epsilon"])
    bands = [_column(values, condition) for values in control["share_of_optimal"].values()]
    return min(float(np.min(np.subtract(band["mean"], band["std"])[1:])) for band in bands)


def _column(values: Summary, condition: int) -> Summary:
    return {key: [row[condition] for row in rows] for key, rows in values.items()}


def _line(
    axes: Any,
    x: list[float],
    values: Summary,
    label: str,
    style: _Style,
    *,
    mark_every: int | None = None,
) -> None:
    mean, std = np.asarray(values["mean"]), np.asarray(values["std"])
    every = max(1, len(x) // 8) if mark_every is None else mark_every
    axes.plot(
        x,
        mean,
        color=style.color,
        label=label,
        ls=style.dashes,
        marker=style.marker,
        markersize=4,
        markevery=every,
    )
    axes.fill_between(x, mean - std, mean + std, color=style.color, alpha=0.13, lw=0)


def _seeds(summary: Summary) -> str:
    count = summary["setting"]["seeds"]
    return f"{count} random MDPs" if count > 1 else "one random MDP"


@contextlib.contextmanager
def _page(
    *, columns: int, rows: int = 1, size: tuple[float, float] | None = None
) -> Iterator[tuple[Any, Any]]:
    """A figure in the study's style and its panels [rows, columns], closed afterwards."""
    size = (4.2 * columns + 0.4, 3.1 * rows + 0.2) if size is None else size
    with matplotlib.rc_context(_STYLE):
        figure, axes = plt.subplots(rows, columns, figsize=size, sharey=True, squeeze=False)
        try:
            yield figure, axes
        finally:
            plt.close(figure)
