"""A progress bar for the study, on stderr; silent where nobody watches."""

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from tabular.study import Report


@contextlib.contextmanager
def progress_bar() -> Iterator[Report]:
    """Yields what `run_study` reports to."""
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("setting up", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)
