"""A snapshot as a block of the terminal that is redrawn in place."""

import math

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from launch.monitor.plain_view import progress_text
from launch.monitor.snapshot import NUM_RETURNS, Actor, Evaluation, Replay, Snapshot
from launch.monitor.units import (
    UNKNOWN,
    format_bytes,
    format_count,
    format_number,
    format_percent,
    format_seconds,
)
from report.counted import counted
from report.duration import duration_text

# An actor that has said nothing for this long is shown as silent and left out of the sums.
_SILENT_SECONDS = 60.0
_MAX_ACTOR_LINES = 8


class LiveView:
    """Redraws one block of the terminal in place; what others print scrolls by above it."""

    def __init__(self, console: Console):
        # Drawn on update only: no refresh thread, so nothing flickers or races with a log line.
        self._live = Live(console=console, auto_refresh=False)

    def update(self, snapshot: Snapshot) -> None:
        """Draws the snapshot over the one before."""
        self._live.start()
        self._live.update(render(snapshot), refresh=True)

    def close(self) -> None:
        """Leaves the last state on the screen."""
        self._live.stop()


def render(snapshot: Snapshot) -> RenderableType:
    """The live view of a snapshot; fits 80 columns."""
    parts = [_progress_bar(snapshot), Text(), _facts(snapshot)]
    if snapshot.actors:
        parts += [Text(), _actors(snapshot.actors)]
    return Group(*parts)


def _progress_bar(snapshot: Snapshot) -> RenderableType:
    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    bar = ProgressBar(total=snapshot.total_frames, completed=snapshot.frames, complete_style="cyan")
    line.add_row(bar, progress_text(snapshot))
    return line


def _facts(snapshot: Snapshot) -> RenderableType:
    """One line per role: its rates, and what it found."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    if snapshot.phase is not None:
        table.add_row("now", str(snapshot.phase))
    table.add_row("rates", _rates(snapshot))
    table.add_row("learner", _learner(snapshot))
    table.add_row("ratio", _samples_per_insert(snapshot))
    table.add_row("return", _training_return(snapshot))
    table.add_row("evaluation", _evaluation(snapshot.evaluation))
    table.add_row("replay", _replay(snapshot.replay))
    return table


def _rates(snapshot: Snapshot) -> str:
    return (
        f"{format_number(snapshot.frames_per_second, ',.0f')} frames/s   "
        f"{format_number(snapshot.updates_per_second, ',.1f')} updates/s   "
        f"params v{format_number(snapshot.params_version, 'd')}"
    )


def _learner(snapshot: Snapshot) -> Text:
    diverged = snapshot.loss is not None and not math.isfinite(snapshot.loss)
    return Text.assemble(
        f"{format_number(snapshot.updates, ',d')} updates   ",
        (f"loss {format_number(snapshot.loss, '.4g')}", "bold red" if diverged else ""),
        f"   waits for data {format_percent(snapshot.data_wait_fraction)}",
    )


def _samples_per_insert(snapshot: Snapshot) -> str:
    realized = format_number(snapshot.samples_per_insert, ".2f")
    return f"{realized} samples per insert (target {snapshot.target_samples_per_insert:.2f})"


def _training_return(snapshot: Snapshot) -> str:
    if snapshot.mean_return is None:
        return f"{UNKNOWN} (no training episode has ended yet)"
    averaged = min(NUM_RETURNS, snapshot.num_episodes)
    return (
        f"{snapshot.mean_return:,.1f} mean of the last {averaged} training episodes "
        f"of {snapshot.num_episodes:,}"
    )


def _evaluation(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return UNKNOWN
    text = f"{evaluation.mean_return:,.1f}"
    if evaluation.episodes is not None:
        text += f" in {counted(evaluation.episodes, 'episode')}"
    text += f" at {format_count(evaluation.frames)} frames"
    if evaluation.human_normalized is not None and math.isfinite(evaluation.human_normalized):
        text += f", human-normalized {evaluation.human_normalized:.2f}"
    return text


def _replay(replay: Replay | None) -> str:
    if replay is None:
        return UNKNOWN
    text = f"{format_number(replay.size, ',d')} items"
    if replay.bytes is not None:
        text += f", {format_bytes(replay.bytes)}"
    if replay.checkpoint_seconds is not None:
        text += f"   last checkpoint {replay.checkpoint_seconds:.1f} s"
        if replay.checkpoint_bytes is not None:
            text += f", {format_bytes(replay.checkpoint_bytes)}"
    return text


def _actors(actors: tuple[Actor, ...]) -> RenderableType:
    """One line per actor and one for all; of many actors, the ones most in need of a look."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("actor", no_wrap=True)
    for header in ("frames/s", "params age", "insert wait", "epsilon"):
        table.add_column(header, justify="right", no_wrap=True)
    shown = actors
    if len(actors) > _MAX_ACTOR_LINES:
        shown = tuple(sorted(actors, key=_health)[:_MAX_ACTOR_LINES])
    for actor in shown:
        _add_actor(table, actor)
    if len(actors) > 1:
        _add_all_actors(table, actors)
    if len(shown) < len(actors):
        table.caption = f"the {len(shown)} slowest of {len(actors)} actors"
        table.caption_justify = "left"
    return table


def _add_actor(table: Table, actor: Actor) -> None:
    if _is_silent(actor):
        silence = f"silent {duration_text(actor.silent_seconds)}"
        table.add_row(actor.name, silence, UNKNOWN, UNKNOWN, UNKNOWN, style="yellow")
        return
    table.add_row(
        actor.name,
        format_number(actor.frames_per_second, ",.0f"),
        format_seconds(actor.params_age_seconds),
        format_percent(actor.insert_wait_fraction),
        format_number(actor.epsilon, ".3f"),
    )


def _add_all_actors(table: Table, actors: tuple[Actor, ...]) -> None:
    reporting = [actor for actor in actors if not _is_silent(actor)]
    rates = [a.frames_per_second for a in reporting if a.frames_per_second is not None]
    ages = [a.params_age_seconds for a in reporting if a.params_age_seconds is not None]
    waits = [a.insert_wait_fraction for a in reporting if a.insert_wait_fraction is not None]
    table.add_row(
        f"all {len(reporting)}",
        f"{sum(rates):,.0f}" if rates else UNKNOWN,
        f"max {format_seconds(max(ages))}" if ages else UNKNOWN,
        f"mean {format_percent(sum(waits) / len(waits))}" if waits else UNKNOWN,
        _epsilon_text(actors),
        style="bold",
    )


def _is_silent(actor: Actor) -> bool:
    return actor.silent_seconds > _SILENT_SECONDS


def _health(actor: Actor) -> tuple[bool, float]:
    """Orders actors: silent ones first, then the slowest."""
    return not _is_silent(actor), actor.frames_per_second or 0.0


def _epsilon_text(actors: tuple[Actor, ...]) -> str:
    """The epsilon of all reporting actors, as a range if they differ."""
    epsilons = [a.epsilon for a in actors if a.epsilon is not None and not _is_silent(a)]
    if not epsilons:
        return UNKNOWN
    low, high = f"{min(epsilons):.3f}", f"{max(epsilons):.3f}"
    return low if low == high else f"{low}..{high}"
