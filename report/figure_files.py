"""Figures as files, SVG and PNG on white, and as SVG inside the page.

The page shows its figures inline, on light and on dark: they have no background, and whatever is
text or frame has one ink, which the page replaces by its own text color.
"""

import html
import io
import pathlib
from typing import NamedTuple

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from report.atomic_file import make_folder, write_atomically
from report.drawn_names import NAMES_ARE_TEXT

INK = "#1f2329"
STYLE = {
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#808890",
    "grid.alpha": 0.25,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 10,
    "legend.frameon": False,
    "legend.handlelength": 2.8,  # room for the dashes
    **NAMES_ARE_TEXT,
    # As text: smaller, searchable, and in the page's own font.
    "svg.fonttype": "none",
    "font.family": "sans-serif",
}
_DPI = 200


class Drawn(NamedTuple):
    """A figure, and a caption that screen readers read out too."""

    name: str  # of its files, without suffix
    caption: str
    figure: Figure
    narrow: Figure | None = None  # for a phone, where `figure` would be too small to read


def write_files(drawn: Drawn, folder: pathlib.Path) -> str:
    """Writes NAME.svg and NAME.png; returns what the page shows, on wide and narrow screens."""
    path = folder / drawn.name
    make_folder(path.parent)
    picture = io.BytesIO()
    with plt.rc_context(STYLE):
        drawn.figure.savefig(picture, format="png", dpi=_DPI)
    # Laid out already; doing it again for the other format is most of the time.
    drawn.figure.set_layout_engine("none")
    svg = _svg(drawn.figure, salt=drawn.name)
    write_atomically(path.with_suffix(".png"), picture.getvalue())
    write_atomically(path.with_suffix(".svg"), _on_white(svg))
    if drawn.narrow is None:
        return _for_page(svg, drawn.caption)
    narrow = _svg(drawn.narrow, salt=f"{drawn.name} narrow")
    return _for_page(svg, drawn.caption, "wide") + _for_page(narrow, drawn.caption, "narrow")


def _svg(figure: Figure, *, salt: str) -> str:
    """The salt keeps names inside the drawing apart from those of other figures on the page, and
    the same from one report to the next.
    """
    text = io.StringIO()
    with plt.rc_context({**STYLE, "svg.hashsalt": salt}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    plt.close(figure)
    return text.getvalue()


def _on_white(svg: str) -> str:
    end_of_tag = svg.index(">", svg.index("<svg")) + 1
    background = '\n <rect width="100%" height="100%" fill="#ffffff"/>'
    return svg[:end_of_tag] + background + svg[end_of_tag:]


def _for_page(svg: str, caption: str, screen: str = "any") -> str:
    body = svg[svg.index("<svg") :].replace(INK, "currentColor")
    described = f'<svg class="{screen}" role="img" aria-label="{html.escape(caption)}" '
    return body.replace("<svg ", described, 1)
