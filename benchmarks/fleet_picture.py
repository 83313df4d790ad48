"""The fleet as one picture: what was measured, and what larger fleets would need."""

import pathlib
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.fleet_capacity import LEARNER_UPDATES_PER_SECOND, Need, Point


def draw_fleet(points: Sequence[Point], needs: Sequence[Need], path: pathlib.Path) -> None:
    """Writes a PNG."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    _draw_rates(left, points)
    _draw_needs(right, needs)
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("actors")
        axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_rates(axes: Axes, points: Sequence[Point]) -> None:
    alone = [point for point in points if point.samples_per_second == 0]
    sampled = [point for point in points if point.samples_per_second > 0]
    for these, label in ((alone, "inserts, nobody samples"), (sampled, "inserts, while sampled")):
        axes.plot(
            [p.actors for p in these], [p.inserts_per_second for p in these], "o-", label=label
        )
    axes.plot(
        [p.actors for p in sampled], [p.samples_per_second for p in sampled], "s--", label="samples"
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel("per second")
    axes.set_title("Measured: server and clients on one machine", fontsize=10)


def _draw_needs(axes: Axes, needs: Sequence[Need]) -> None:
    actors = [need.actors for need in needs]
    axes.plot(actors, [need.cores_free for need in needs], label="actors at full speed")
    axes.plot(
        actors,
        [need.cores_held for need in needs],
        label=f"held to a learner of {LEARNER_UPDATES_PER_SECOND:.0f} updates/s",
    )
    axes.set_yscale("log")
    axes.set_ylabel("server cores")
    axes.set_title("Extrapolated from core time per operation", fontsize=10)
