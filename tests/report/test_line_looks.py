"""Lines that coincide: each is seen, in a report and in a comparison."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from report.line_looks import COLORS, looks_of
from report.runs import read_run
from tests.report.synthetic_runs import REFERENCES, write_run

SAME = (-20.0, -10.0, -12.0, 5.0, 5.0, 18.0)


def pixels(figure: Figure) -> dict[str, int]:
    """How many pixels of a figure have the color of each line; legends do not count."""
    for legend in [*figure.legends, *(axes.get_legend() for axes in figure.axes)]:
        if legend is not None:
            legend.remove()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
    wanted = {color: np.round(255 * np.array(to_rgb(color))) for color in COLORS}
    return {
        color: int((np.abs(drawn - rgb).max(axis=-1) <= 2).sum()) for color, rgb in wanted.items()
    }


@pytest.mark.parametrize("count", [2, 3, 4, len(COLORS)])
def test_of_lines_that_coincide_each_is_seen(count):
    looks = looks_of(map(str, range(count)))
    figure = Figure(figsize=(4, 3), dpi=150)
    axes = figure.add_subplot()
    for look in looks.values():
        axes.plot(np.arange(100), np.zeros(100), **look.line(100))
    found = pixels(figure)
    assert all(found[look.color] >= 20 for look in looks.values()), found


@pytest.mark.parametrize("count", [2, 4])
def test_of_single_points_that_coincide_each_is_seen(count):
    looks = looks_of(map(str, range(count)))
    figure = Figure(figsize=(4, 3), dpi=200)
    axes = figure.add_subplot()
    for look in looks.values():
        axes.plot([1.0], [1.0], **look.line(1))
    found = pixels(figure)
    assert all(found[look.color] >= 3 for look in looks.values()), found


def test_lines_that_part_and_meet_again_are_both_seen_where_they_meet():
    """Dashes are out of step then; the one below still covers more than the one above."""
    looks = looks_of("ab")
    figure = Figure(figsize=(4, 3), dpi=150)
    axes = figure.add_subplot()
    for detour, look in zip((0.0, 5.0), looks.values(), strict=True):
        axes.plot([0, 1, 2, 3, 10], [0, detour, 0, 0, 0], **look.line(100))
    axes.set(xlim=(3, 10), ylim=(-1, 1))  # where they are one
    found = pixels(figure)
    assert all(found[look.color] >= 20 for look in looks.values()), found


def test_in_the_chart_of_a_game_two_methods_that_coincide_are_both_seen(tmp_path):
    pytest.importorskip("rliable", reason="rliable is in the full environment only")
    from report.figures import draw_game

    runs = {
        algorithm: [
            read_run(
                write_run(tmp_path / algorithm, algorithm=algorithm, returns=SAME),
                REFERENCES,
                print,
            )
        ]
        for algorithm in ("va", "q")
    }
    looks = looks_of(runs)
    found = pixels(draw_game("pong", runs, REFERENCES["pong"], looks).figure)
    assert all(found[look.color] >= 50 for look in looks.values()), found
