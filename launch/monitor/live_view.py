"""Two ways to show a snapshot: a live view for a terminal, short lines for a log.

Both have `update(snapshot)` and `close()`. Neither looks at the clock: a view changes when it is
given a snapshot, and then only.
"""

from __future__ import annotations

import math
import sys
from typing import IO, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from launch.monitor.snapshot import NUM_RETURNS, Actor, Evaluation, Replay, Snapshot

# An actor that has said nothing for this long is shown as silent and left out of the sums.
_SILENT_AFTER_SECONDS = 60.0
_MAX_ACTOR_LINES = 8
_UNKNOWN = "-"


class View(Protocol):
    """Shows snapshots until it is closed."""

    def update(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


def make_view(console: Console | None = None, *, title: str = "") -> View:
    """The live view on a terminal, plain lines anywhere else (a pipe, a file, a batch job)."""
    console = Console() if console is None else console
    # Not console.is_terminal: FORCE_COLOR turns that on for logs, where a live view is noise.
    if console.file.isatty() and not console.is_dumb_terminal:
        return LiveView(console, title=title)
    return PlainView(console.file)


class LiveView:
    """Redraws one block of the terminal in place; what others print scrolls by above it."""

    def __init__(self, console: Console, *, title: str = ""):
        self._title = title
        # Drawn on update only: no refresh thread, so nothing flickers or races with a log line.
        self._live = Live(console=console, auto_refresh=False)

    def update(self, snapshot: Snapshot) -> None:
        self._live.start()
        self._live.update(render(snapshot, title=self._title), refresh=True)

    def close(self) -> None:
        """Leaves the last state on the screen."""
        self._live.stop()


class PlainView:
    """One line at most every `period_seconds` of row time; 0 prints every update."""

    def __init__(self, file: IO[str] | None = None, *, period_seconds: float = 10.0):
        self._file = file
        self._period_seconds = period_seconds
        self._printed_time: float | None = None
        self._unprinted: Snapshot | None = None

    def update(self, snapshot: Snapshot) -> None:
        if snapshot.time is None:
            return
        self._unprinted = snapshot
        due = (
            self._printed_time is None or snapshot.time - self._printed_time >= self._period_seconds
        )
        if due:
            self._print(snapshot)

    def close(self) -> None:
        """Prints the final state if it has not been printed yet."""
        if self._unprinted is not None and self._unprinted.time != self._printed_time:
            self._print(self._unprinted)

    def _print(self, snapshot: Snapshot) -> None:
        file = sys.stdout if self._file is None else self._file
        # Set first: if printing fails, close() must not fail on the same line again.
        self._printed_time = snapshot.time
        print(format_line(snapshot), file=file, flush=True)


def format_line(snapshot: Snapshot) -> str:
    """The state of the run in one line; what has not been reported is left out."""
    parts = [_progress_text(snapshot)]
    if snapshot.frames_per_second is not None:
        parts.append(f"{snapshot.frames_per_second:,.0f} frames/s")
    if snapshot.updates_per_second is not None:
        parts.append(f"{snapshot.updates_per_second:,.1f} updates/s")
    if snapshot.loss is not None:
        parts.append(f"loss {snapshot.loss:.4g}")
    if snapshot.mean_return is not None:
        parts.append(f"return {snapshot.mean_return:,.1f}")
    if snapshot.evaluation is not None:
        parts.append(f"eval {snapshot.evaluation.mean_return:,.1f}")
    if snapshot.samples_per_insert is not None:
        parts.append(f"samples/insert {snapshot.samples_per_insert:.2f}")
    return " | ".join(parts)


def render(snapshot: Snapshot, *, title: str = "") -> RenderableType:
    """The live view of a snapshot; fits 80 columns."""
    parts: list[RenderableType] = []
    if title:
        parts.append(Text(title, style="bold", no_wrap=True, overflow="ellipsis"))
    parts += [_progress_bar(snapshot), Text(), _facts(snapshot)]
    if snapshot.actors:
        parts += [Text(), _actors(snapshot.actors)]
    return Group(*parts)


def _progress_bar(snapshot: Snapshot) -> RenderableType:
    line = Table.grid(padding=(0, 1), expand=True)
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    # Without a total the bar would have to pulse, that is, follow the clock.
    bar: RenderableType = (
        Text()
        if snapshot.total_frames is None
        else ProgressBar(
            total=snapshot.total_frames, completed=snapshot.frames, complete_style="cyan"
        )
    )
    line.add_row(bar, _progress_text(snapshot))
    return line


def _facts(snapshot: Snapshot) -> RenderableType:
    """One line per role: its rates, and what it found."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_row("rates", _rates(snapshot))
    table.add_row("learner", _learner(snapshot))
    table.add_row("ratio", _samples_per_insert(snapshot))
    table.add_row("return", _training_return(snapshot))
    table.add_row("evaluation", _evaluation(snapshot.evaluation))
    table.add_row("replay", _replay(snapshot.replay))
    return table


def _rates(snapshot: Snapshot) -> str:
    return (
        f"{_number(snapshot.frames_per_second, ',.0f')} frames/s   "
        f"{_number(snapshot.updates_per_second, ',.1f')} updates/s   "
        f"params v{_number(snapshot.params_version, 'd')}"
    )


def _learner(snapshot: Snapshot) -> Text:
    diverged = snapshot.loss is not None and not math.isfinite(snapshot.loss)
    return Text.assemble(
        f"{_number(snapshot.updates, ',d')} updates   ",
        (f"loss {_number(snapshot.loss, '.4g')}", "bold red" if diverged else ""),
        f"   waits for data {_percent(snapshot.data_wait_fraction)}",
    )


def _samples_per_insert(snapshot: Snapshot) -> str:
    realised = f"{_number(snapshot.samples_per_insert, '.2f')} samples per insert"
    if snapshot.target_samples_per_insert is None:
        return realised
    return f"{realised} (target {snapshot.target_samples_per_insert:.2f})"


def _training_return(snapshot: Snapshot) -> str:
    if snapshot.mean_return is None:
        return f"{_UNKNOWN} (no training episode has ended yet)"
    averaged = min(NUM_RETURNS, snapshot.num_episodes)
    return (
        f"{snapshot.mean_return:,.1f} mean of the last {averaged} training episodes "
        f"of {snapshot.num_episodes:,}"
    )


def _evaluation(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return _UNKNOWN
    text = f"{evaluation.mean_return:,.1f}"
    if evaluation.episodes is not None:
        text += f" in {evaluation.episodes} episodes"
    text += f" at {format_count(evaluation.frames)} frames"
    if evaluation.human_normalized is not None and math.isfinite(evaluation.human_normalized):
        text += f", human-normalized {evaluation.human_normalized:.2f}"
    return text


def _replay(replay: Replay | None) -> str:
    if replay is None:
        return _UNKNOWN
    text = f"{_number(replay.size, ',d')} items"
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
        silence = f"silent {format_duration(actor.silent_seconds)}"
        table.add_row(actor.name, silence, _UNKNOWN, _UNKNOWN, _UNKNOWN, style="yellow")
        return
    table.add_row(
        actor.name,
        _number(actor.frames_per_second, ",.0f"),
        _seconds(actor.params_age_seconds),
        _percent(actor.insert_wait_fraction),
        _number(actor.epsilon, ".3f"),
    )


def _add_all_actors(table: Table, actors: tuple[Actor, ...]) -> None:
    reporting = [actor for actor in actors if not _is_silent(actor)]
    rates = [a.frames_per_second for a in reporting if a.frames_per_second is not None]
    ages = [a.params_age_seconds for a in reporting if a.params_age_seconds is not None]
    waits = [a.insert_wait_fraction for a in reporting if a.insert_wait_fraction is not None]
    table.add_row(
        f"all {len(reporting)}",
        f"{sum(rates):,.0f}" if rates else _UNKNOWN,
        f"max {_seconds(max(ages))}" if ages else _UNKNOWN,
        f"mean {_percent(sum(waits) / len(waits))}" if waits else _UNKNOWN,
        _epsilon_text(actors),
        style="bold",
    )


def _is_silent(actor: Actor) -> bool:
    return actor.silent_seconds > _SILENT_AFTER_SECONDS


def _health(actor: Actor) -> tuple[bool, float]:
    """Orders actors: silent ones first, then the slowest."""
    return not _is_silent(actor), actor.frames_per_second or 0.0


def _epsilon_text(actors: tuple[Actor, ...]) -> str:
    """The epsilon of all reporting actors, as a range if they differ."""
    epsilons = [a.epsilon for a in actors if a.epsilon is not None and not _is_silent(a)]
    if not epsilons:
        return _UNKNOWN
    low, high = f"{min(epsilons):.3f}", f"{max(epsilons):.3f}"
    return low if low == high else f"{low}..{high}"


def _progress_text(snapshot: Snapshot) -> str:
    if snapshot.total_frames is None:
        return f"{format_count(snapshot.frames)} frames"
    percent = 100.0 * snapshot.frames / snapshot.total_frames if snapshot.total_frames else 100.0
    eta = _UNKNOWN if snapshot.eta_seconds is None else format_duration(snapshot.eta_seconds)
    return (
        f"{format_count(snapshot.frames)}/{format_count(snapshot.total_frames)} "
        f"frames {percent:.1f}% ETA {eta}"
    )


def format_count(count: float) -> str:
    """12345678 -> '12.35M': four digits are enough to see it move."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.4g}{unit}"
    return f"{count:.0f}"


def format_bytes(count: float) -> str:
    """Decimal units, as disks and `df -H` have them."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def format_duration(seconds: float) -> str:
    """The two largest units: '2d 3h', '3h 05m', '5m 09s', '9s'."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour}h"
    if hours:
        return f"{hour}h {minute:02d}m"
    return f"{minute}m {second:02d}s" if minutes else f"{second}s"


def _number(value: float | None, format_spec: str) -> str:
    return _UNKNOWN if value is None else format(value, format_spec)


def _seconds(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.1f} s"


def _percent(fraction: float | None) -> str:
    return _UNKNOWN if fraction is None else f"{100.0 * fraction:.0f}%"
