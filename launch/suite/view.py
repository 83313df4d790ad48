"""The state of a suite, as a grid on a terminal or as lines in a log."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from launch.monitor.view import can_redraw
from report.counted import counted
from report.duration import duration_text
from report.plain_text import plain

_PLAIN_SECONDS = 60.0
# What is around the grid: progress, legend, heading, and room for the prompt.
_OTHER_LINES = 7


class Cell(NamedTuple):
    """One run."""

    game: str
    method: str  # the algorithm, with what is swept
    state: str  # waiting, running, done, failed, unfinished, elsewhere
    fraction: float  # of its frames


class SuiteState(NamedTuple):
    """All runs, in the order of the grid."""

    cells: Sequence[Cell]
    elapsed_seconds: float
    eta_seconds: float | None

    def count(self, state: str) -> int:
        """Runs in a state."""
        return sum(cell.state == state for cell in self.cells)

    @property
    def fraction(self) -> float:
        """How much of all frames is done."""
        return sum(cell.fraction for cell in self.cells) / len(self.cells)


class SuiteView:
    """Redraws the grid in place on a terminal; elsewhere prints a line a minute."""

    def __init__(self, console: Console):
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if can_redraw(console) else None
        self._printed_at: float | None = None

    def update(self, state: SuiteState) -> None:
        """Shows a state."""
        if self._live is not None:
            self._live.start()
            self._live.update(render(state, max_lines=self._console.height), refresh=True)
        elif self._printed_at is None or state.elapsed_seconds >= self._printed_at + _PLAIN_SECONDS:
            self._printed_at = state.elapsed_seconds
            self.say(format_state(state))

    def say(self, message: str) -> None:
        """A line that stays."""
        self._console.print(plain(message), soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Leaves the last grid on the screen."""
        if self._live is not None:
            self._live.stop()


def format_state(state: SuiteState) -> str:
    """The suite in one line."""
    parts = [f"{state.count('done')} of {counted(len(state.cells), 'run')} done"]
    for name in ("running", "failed", "unfinished", "elsewhere"):
        if state.count(name):
            parts.append(f"{state.count(name)} {name}")
    parts.append(f"{state.fraction:.1%} of all frames")
    if state.eta_seconds is not None:
        parts.append(f"ETA {duration_text(state.eta_seconds)}")
    return ", ".join(parts)


def render(state: SuiteState, *, max_lines: int) -> RenderableType:
    """The grid: games down, methods across, a mark for each seed."""
    methods = list(dict.fromkeys(cell.method for cell in state.cells))
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("game", no_wrap=True)
    for method in methods:
        table.add_column(method, no_wrap=True)
    games = list(dict.fromkeys(cell.game for cell in state.cells))
    shown = _most_telling(games, state, max(max_lines - _OTHER_LINES, 3))
    for game in shown:
        table.add_row(game, *(_marks(state, game, method) for method in methods))
    if len(shown) < len(games):
        table.add_row(Text(f"and {len(games) - len(shown)} more games", style="dim"))
    bar = ProgressBar(total=1.0, completed=state.fraction, complete_style="cyan")
    legend = Text("✓ done  % running  · waiting  ✗ failed  ‖ stopped  ~ elsewhere", style="dim")
    # In a grid of its own: a bare bar does not end its line.
    line = Table.grid(expand=True)
    line.add_row(bar)
    return Group(line, Text(format_state(state)), Text(), table, legend)


def _most_telling(games: Sequence[str], state: SuiteState, limit: int) -> Sequence[str]:
    """All games if they fit; else those with something going on, then the others in order."""
    if len(games) <= limit:
        return games
    busy = {cell.game for cell in state.cells if cell.state in ("running", "failed")}
    chosen = sorted(games, key=lambda game: game not in busy)[:limit]
    return [game for game in games if game in chosen]


def _marks(state: SuiteState, game: str, method: str) -> Text:
    marks = Text()
    for cell in state.cells:
        if (cell.game, cell.method) == (game, method):
            marks.append(*_mark(cell))
            marks.append(" ")
    return marks


def _mark(cell: Cell) -> tuple[str, str]:
    if cell.state == "running":
        return f"{cell.fraction:.0%}", "bold cyan"
    if cell.state == "unfinished":
        return f"{cell.fraction:.0%}‖", "yellow"
    return {
        "done": ("✓", "green"),
        "failed": ("✗", "bold red"),
        "elsewhere": ("~", "yellow"),
        "waiting": ("·", "dim"),
    }[cell.state]
