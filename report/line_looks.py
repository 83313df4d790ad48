"""How the lines of a chart look, so that each is seen where several coincide.

Lines are drawn in their order, one over the other. The first is solid; every later one has dashes
that cover a smaller part of the same period, and smaller marks. So whatever lies below shows
through the gaps and around the marks: of n lines that coincide, each is seen for at least one
part in n + 1 of its length.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

# Apart for the color-blind, and of a lightness that stands out on white and on near-black.
COLORS = ("#d1495b", "#2f80c9", "#2f9e6e", "#b5832a", "#8a63d2", "#5c8a8a", "#b0568f", "#7a7f87")
_WIDTH = 1.5  # of a line, in points
_DASH = 2.0  # the shortest, in widths of a line
_SMALLEST_MARK, _MARK_STEP, _LARGEST_MARK = 2.5, 1.3, 8.0  # points
_MOST_MARKS = 60  # on a line; more would run together


class Look(NamedTuple):
    """The look of a line, the same in all charts of a report."""

    color: str
    dashes: Any  # a line style of Matplotlib
    mark: float  # size in points

    def line(self, num_points: int, *, marks: bool = True) -> dict[str, Any]:
        """What `Axes.plot` takes; a line of one point is seen by its mark alone."""
        return {
            "color": self.color,
            "linestyle": self.dashes,
            "linewidth": _WIDTH,
            "marker": "o" if marks and num_points < _MOST_MARKS else "",
            "markersize": self.mark,
            "markeredgewidth": 0,
        }


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """One look for each name, in the order in which they are to be drawn."""
    names = list(names)
    count = min(len(names), len(COLORS))
    return {name: _look(index % len(COLORS), count) for index, name in enumerate(names)}


def _look(index: int, count: int) -> Look:
    dashes = "-" if index == 0 else (0, ((count + 1 - index) * _DASH, index * _DASH))
    step = min(_MARK_STEP, (_LARGEST_MARK - _SMALLEST_MARK) / max(count - 1, 1))
    return Look(COLORS[index], dashes, _SMALLEST_MARK + step * (count - 1 - index))
