"""`vantage compare RUN...`: the learning curves of runs and folders of runs, from their files."""

import pathlib
from collections.abc import Sequence

from actors.games import reference_scores
from launch.errors import ExitCode, InputError
from launch.terminal import make_console, say, warn
from report.comparison import NothingToCompareError, compare_runs


def compare(runs: Sequence[pathlib.Path], out: pathlib.Path | None) -> ExitCode:
    """Draws the learning curves of runs in the terminal, and as PNG if asked to."""
    if not runs:
        raise InputError(
            "vantage compare needs runs, or folders of runs: vantage compare runs/a runs/b draws "
            "their learning curves here, and --out curves.png into a file"
        )
    console = make_console()
    try:
        text = compare_runs(
            runs,
            out,
            references=reference_scores(),
            warn=warn,
            columns=console.width,
            color=console.file.isatty(),
        )
    except NothingToCompareError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"cannot write '{error.filename or out}': {error.strerror}") from None
    print(text)
    if out is not None:
        say(f"drawn to {out}")
    return ExitCode.DONE
