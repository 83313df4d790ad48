"""The profile as one picture: stages beside their limits, and where core time goes."""

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from launch.profile.stages import Stage
from launch.profile.timed_run import TimedRun


def draw_profile(
    stages: list[Stage], run: TimedRun, cores: int, verdict: str, path: pathlib.Path
) -> None:
    """Writes a PNG."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 4), width_ratios=[3, 2], layout="constrained"
    )
    _draw_stages(left, stages)
    _draw_roles(right, run, cores)
    figure.suptitle(verdict.split(":")[0], fontsize=12)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_stages(axes: Axes, stages: list[Stage]) -> None:
    names = [f"{stage.name}\nper {stage.per}" for stage in stages]
    rows = range(len(stages))
    axes.barh([row - 0.2 for row in rows], [s.wall_ms for s in stages], 0.4, label="stage alone")
    axes.barh([row + 0.2 for row in rows], [s.bare_ms for s in stages], 0.4, label="bare limit")
    axes.set_yticks(rows, names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds (log scale)")
    axes.legend()


def _draw_roles(axes: Axes, run: TimedRun, cores: int) -> None:
    names = list(run.roles)
    axes.bar(names, [run.roles[name].cores for name in names])
    axes.axhline(cores, linestyle="--", linewidth=1, color="gray")
    axes.set_ylabel(f"cores in use, of {cores}")
    axes.set_title(
        f"{run.updates_per_second:.1f} updates/s, {run.frames_per_second:,.0f} frames/s",
        fontsize=10,
    )


def draw_sweep(points: list[tuple[int, TimedRun]], path: pathlib.Path) -> None:
    """Rates against the number of actors."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    actors = [count for count, _ in points]
    axes.plot(actors, [run.frames_per_second for _, run in points], marker="o", label="frames/s")
    other = axes.twinx()
    other.plot(
        actors,
        [run.updates_per_second for _, run in points],
        marker="s",
        color="C1",
        label="updates/s",
    )
    axes.set_xlabel("actors")
    axes.set_ylabel("frames per second")
    other.set_ylabel("updates per second")
    axes.set_ylim(bottom=0)
    other.set_ylim(bottom=0)
    figure.legend(loc="lower right", bbox_to_anchor=(0.85, 0.15))
    figure.savefig(path, dpi=120)
    plt.close(figure)
