"""Learning curves from hand-made rows."""

import numpy as np

from report.learning_curve import curve_of, draw, smooth

ROWS = [
    {"time": 60.0, "role": "learner", "frames": 0},
    {"time": 120.0, "role": "actor/0", "frames": 100, "episode_return": -2.0},
    {"time": 180.0, "role": "actor/0", "frames": 200, "episode_return": 4.0},
    {"time": 180.0, "role": "evaluator", "frames": 200, "eval_return": None},
    {"time": 240.0, "role": "evaluator", "frames": 300, "eval_return": 18.5},
]


def test_a_curve_counts_minutes_from_the_first_row_and_skips_missing_values():
    curve = curve_of(ROWS, "eval_return")
    assert (curve.minutes.tolist(), curve.frames.tolist(), curve.values.tolist()) == (
        [3.0],
        [300.0],
        [18.5],
    )


def test_smoothing_averages_what_came_before():
    curve = smooth(curve_of(ROWS, "episode_return"), window=2)
    np.testing.assert_allclose(curve.values, [-2.0, 1.0])
    np.testing.assert_allclose(smooth(curve, window=1).values, curve.values)


def test_a_drawing_is_a_png_even_without_data(tmp_path):
    for name, rows in (("some", ROWS), ("none", ROWS[:1])):
        out = tmp_path / f"{name}.png"
        draw(rows, out, title=name)
        assert out.read_bytes().startswith(b"\x89PNG")
