"""What a search has found so far: a table, a picture, and flags to paste."""

import math
import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from launch.tune.plan import Trial
from launch.tune.scores import TrialScore
from launch.tune.search import Standing, rate_of
from report.atomic_file import make_folder
from report.counted import counted
from report.csv_table import Table, write_csv
from report.drawn_names import NAMES_ARE_TEXT, label

TABLE, PICTURE = "rates", "rates.png"


class Scored(NamedTuple):
    """A rate that was tried."""

    trial: Trial
    score: TrialScore


class Search(NamedTuple):
    """One algorithm's search so far."""

    algorithm: str
    start: float
    standing: Standing
    scored: Mapping[int, Scored]  # by exponent

    @property
    def rate(self) -> float:
        """The best rate so far."""
        return rate_of(self.start, self.standing.best)


def write_result(searches: Sequence[Search], folder: pathlib.Path) -> None:
    """Writes the table and, once there is something to see, the picture."""
    make_folder(folder)
    write_csv(rate_table(searches), folder)
    if any(search.scored for search in searches):
        _draw(searches, folder / PICTURE)


def rate_table(searches: Sequence[Search]) -> Table:
    """One row per algorithm, rate, game and seed; `score` is the rate's, over all of them."""
    columns = ("algorithm", "learning_rate", "score", "best", "game", "seed", "human_normalized")
    rows = [
        (search.algorithm, scored.trial.rate, scored.score.score, k == search.standing.best,
         game, seed, value)
        for search in searches
        for k, scored in sorted(search.scored.items())
        for game, values in scored.score.by_game.items()
        for seed, value in enumerate(values, start=1)
    ]  # fmt: skip
    return Table(TABLE, columns, rows)


def lines_of(search: Search) -> list[str]:
    """The search as text, a line for each rate that was tried."""
    lines = []
    for k, scored in sorted(search.scored.items()):
        by_game = ", ".join(
            f"{game} {sum(values) / len(values):.3f}"
            for game, values in scored.score.by_game.items()
        )
        mark = "  <- best" if k == search.standing.best else ""
        lines.append(
            f"  {search.algorithm:18} {scored.trial.rate:<10g} {scored.score.score:8.3f}  "
            f"({by_game}){mark}"
        )
    return lines


def flags_of(searches: Sequence[Search]) -> list[str]:
    """The rates found, as flags of `vantage train` and of `vantage suite`."""
    single = [
        f"{search.algorithm}: {search.standing.ended} after "
        f"{counted(search.standing.moves, 'move')}: "
        f"--algorithm {search.algorithm} --learning-rate {search.rate:g}"
        for search in searches
    ]
    together = " ".join(f"{search.algorithm}={search.rate:g}" for search in searches)
    return [*single, f"for a suite: --learning-rates {together}"]


def _draw(searches: Sequence[Search], path: pathlib.Path) -> None:
    """Scores against rates: a line for each algorithm, a dot for each run, a ring for the best."""
    with plt.rc_context(NAMES_ARE_TEXT):
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        for number, search in enumerate(searches):
            _draw_search(axes, search, f"C{number}")
        _label_rates(axes, {found.trial.rate for s in searches for found in s.scored.values()})
        axes.set(xlabel="learning rate", ylabel="human-normalized score at the end")
        axes.grid(alpha=0.3)
        axes.legend(loc="best", frameon=False)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def _label_rates(axes: plt.Axes, rates: Collection[float]) -> None:
    """Each rate as it is typed; a logarithmic axis would write powers as formulas."""
    axes.set_xscale("log")
    axes.set_xticks(sorted(rates), [f"{rate:g}" for rate in sorted(rates)])
    axes.minorticks_off()


def _draw_search(axes: plt.Axes, search: Search, color: str) -> None:
    # A rate that diverged has no place on the axis; the table has it.
    seen = {k: s for k, s in sorted(search.scored.items()) if math.isfinite(s.score.score)}
    axes.plot(
        [s.trial.rate for s in seen.values()], [s.score.score for s in seen.values()],
        color=color, marker="o", markersize=3, label=label(search.algorithm),
    )  # fmt: skip
    for scored in seen.values():
        for values in scored.score.by_game.values():
            axes.plot([scored.trial.rate] * len(values), values, ".", color=color, alpha=0.4)
    if search.standing.best in seen:
        best = seen[search.standing.best]
        axes.plot(
            best.trial.rate, best.score.score, "o", markersize=11, fillstyle="none", color=color
        )
