"""The five figures, drawn from the summary alone: lines are means, bands standard deviations."""

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
# What a line is called in the summary -> how it is called and drawn in a figure.
_Lines = Mapping[str, tuple[str, _Style]]
Drawing = Callable[[Summary, pathlib.Path], None]


def draw_control_curves(summary: Summary, out: pathlib.Path) -> None:
    """Figure 1: performance of the greedy policy over updates."""
    figure = summary["figures"]["control_curves"]
    with _page() as (canvas, axes):
        for (name, values), style in zip(figure["algorithms"].items(), cycle(_STYLES)):
            _line(axes, figure["x"], values["fraction_of_optimal"], name, style)
        axes.set(xlabel="updates", ylabel="performance / optimal performance")
        axes.set_title(f"Control, ε = {figure['epsilon']:g}, {_seeds(summary)}")
        axes.set_xlim(0, figure["x"][-1])
        axes.set_ylim(_lowest_after_start(figure["algorithms"]) - 0.02, 1.01)
        axes.legend(loc="lower right")
        canvas.savefig(out, dpi=_DPI)


def draw_performance_by_epsilon(summary: Summary, out: pathlib.Path) -> None:
    """Figure 2: final performance over epsilon."""
    figure = summary["figures"]["performance_by_epsilon"]
    with _page() as (canvas, axes):
        for (name, values), style in zip(figure["algorithms"].items(), cycle(_STYLES)):
            _line(axes, figure["x"], values["fraction_of_optimal"], name, style, mark_every=1)
        axes.set(xlabel="ε: share of the uniform policy in μ", ylabel="final / optimal performance")
        axes.set_title(f"Control after {summary['setting']['updates']} updates, {_seeds(summary)}")
        axes.legend(loc="lower right")
        canvas.savefig(out, dpi=_DPI)


def draw_advantage_error(summary: Summary, out: pathlib.Path) -> None:
    """Figure 3: error of the advantage over updates, a panel for each data budget."""
    floor = summary["figures"]["advantage_error"]["floor_of_va"]["mean"]
    lines = {
        "va": ("VA-learning: A", _BLUE),
        "td": ("TD: Q − πQ", _GRAY),
        "va_centered": ("VA-learning: A − πA", _SKY),
    }
    _draw_budgets(summary, "advantage_error", r"$\|\hat A_t - A^\pi\|_2$", lines, floor, out)


def draw_q_error(summary: Summary, out: pathlib.Path) -> None:
    """Figure 4: error of Q over updates, a panel for each data budget."""
    lines = {"va": ("VA-learning: V + A", _BLUE), "td": ("TD: Q", _GRAY)}
    _draw_budgets(summary, "q_error", r"$\|\hat Q_t - Q^\pi\|_2$", lines, None, out)


def draw_advantage_norms(summary: Summary, out: pathlib.Path) -> None:
    """Figure 5: squared advantage norms over updates."""
    figure = summary["figures"]["advantage_norms"]
    lines = {
        "dueling_uniform": ("dueling, under u", _GREEN),
        "dueling_mu": ("dueling, under μ", _BLUE),
        "behavior_dueling_mu": ("behavior_dueling, under μ", _ORANGE),
    }
    with _page() as (canvas, axes):
        for name, (label, style) in lines.items():
            _line(axes, figure["x"], figure["algorithms"][name], label, style)
        axes.set(xlabel="updates", ylabel="mean of (f(x, a) − f(x, ν))² over samples")
        axes.set_title(f"Squared advantage norms, ε = {figure['epsilon']:g}, {_seeds(summary)}")
        axes.set_xlim(0, figure["x"][-1])
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left")
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


def _draw_budgets(
    summary: Summary,
    key: str,
    label: str,
    lines: _Lines,
    floor: float | None,
    out: pathlib.Path,
) -> None:
    figure = summary["figures"][key]
    budgets = figure["budgets"]
    with _page(columns=len(budgets), size=(2.6 * len(budgets) + 0.6, 3.1)) as (canvas, panels):
        for axes, (budget, algorithms) in zip(np.atleast_1d(panels), budgets.items(), strict=True):
            for name, (text, style) in lines.items():
                _line(axes, figure["x"], algorithms[name], text, style)
            if floor is not None:
                limit = r"$\|A_\mu^\pi - A^\pi\|_2$: the limit of A"
                axes.axhline(floor, color=_BLUE.color, lw=0.9, ls=(0, (1, 2)), label=limit)
            axes.set(xlabel="updates", title=f"{budget} trajectories")
            axes.set_xlim(0, figure["x"][-1])
            axes.set_ylim(bottom=0)
            axes.locator_params(axis="x", nbins=4)
        first = np.atleast_1d(panels)[0]
        first.set_ylabel(label)
        canvas.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        canvas.savefig(out, dpi=_DPI)


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


def _lowest_after_start(algorithms: Summary) -> float:
    """The lowest point of all bands after the start, where tables of zeros would set the scale."""
    shares = [values["fraction_of_optimal"] for values in algorithms.values()]
    return min(float(np.min(np.subtract(s["mean"], s["std"])[1:])) for s in shares)


def _seeds(summary: Summary) -> str:
    count = summary["setting"]["seeds"]
    return f"{count} random MDPs" if count > 1 else "one random MDP"


@contextlib.contextmanager
def _page(*, columns: int = 1, size: tuple[float, float] = (4.8, 3.4)) -> Iterator[tuple[Any, Any]]:
    """A figure in the study's style and its axes, closed afterwards."""
    with matplotlib.rc_context(_STYLE):
        figure, axes = plt.subplots(ncols=columns, figsize=size, sharey=True)
        try:
            yield figure, axes
        finally:
            plt.close(figure)
