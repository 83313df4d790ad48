"""Draws the learning curve of a run: `python -m report.learning_curve RUN --out curve.png`."""

import argparse
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from report.metrics_file import Row, read_rows

_SMOOTHED_EPISODES = 20


class Curve(NamedTuple):
    """Points of a curve, over minutes of wall clock and over frames."""

    minutes: np.ndarray
    frames: np.ndarray
    values: np.ndarray


def curve_of(rows: Iterable[Row], key: str) -> Curve:
    """All rows that have the key; minutes count from the first row of any kind."""
    rows = list(rows)
    start = rows[0]["time"] if rows else 0.0
    points = [
        ((row["time"] - start) / 60.0, row["frames"], row[key])
        for row in rows
        if row.get(key) is not None
    ]
    columns = np.array(points, float).reshape(-1, 3).T
    return Curve(*columns)


def smooth(curve: Curve, window: int = _SMOOTHED_EPISODES) -> Curve:
    """Each value becomes the mean of those up to it, `window` at most."""
    sums = np.cumsum(np.concatenate([[0.0], curve.values]))
    end = np.arange(1, len(curve.values) + 1)
    begin = np.maximum(end - window, 0)
    return curve._replace(values=(sums[end] - sums[begin]) / (end - begin))


def draw(rows: Iterable[Row], out: pathlib.Path, *, title: str) -> None:
    """Writes a PNG with training and evaluation returns over wall-clock minutes."""
    rows = list(rows)
    training = smooth(curve_of(rows, "episode_return"))
    evaluation = curve_of(rows, "eval_return")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    label = f"training (mean of {_SMOOTHED_EPISODES} episodes)"
    axes.plot(training.minutes, training.values, color="#8c959f", label=label)
    axes.plot(
        evaluation.minutes, evaluation.values, color="#0969da", marker="o", ms=3, label="evaluation"
    )
    axes.set(xlabel="minutes", ylabel="return", title=title)
    axes.grid(alpha=0.3)
    axes.legend(loc="best", frameon=False)
    _add_frames_axis(axes, training)
    figure.savefig(out, dpi=150)
    plt.close(figure)


def _add_frames_axis(axes: Any, curve: Curve) -> None:
    if len(curve.minutes) < 2:
        return
    # Frames only grow with time, so ticks can be placed by interpolation.
    top = axes.twiny()
    top.set_xlim(axes.get_xlim())
    frames = np.linspace(0, curve.frames.max(), 6)[1:]
    top.set_xticks(np.interp(frames, curve.frames, curve.minutes))
    top.set_xticklabels([f"{count / 1e6:.1f}M" for count in frames])
    top.set_xlabel("frames")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--title", default="")
    flags = parser.parse_args()
    draw(read_rows(flags.run / "metrics.jsonl"), flags.out, title=flags.title)


if __name__ == "__main__":
    main()
