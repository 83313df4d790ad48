"""`vantage report DIR` and `vantage compare RUN...`: what runs have reached, from their files."""

import pathlib
import sys
from collections.abc import Sequence

from rich.console import Console

from actors.games import reference_scores
from launch.bounds import check_at_least_one
from launch.errors import ExitCode, InputError


def report(folder: pathlib.Path, out: pathlib.Path, *, resamples: int) -> ExitCode:
    """Writes the report on all runs at or below a folder."""
    from report.build import SUMMARY, NothingToReportError, build_report

    check_at_least_one(resamples=resamples)
    try:
        page = build_report(
            folder, out, references=reference_scores(), warn=_warn, resamples=resamples
        )
    except NothingToReportError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"cannot write '{error.filename or out}': {error.strerror}") from None
    print(f"open {page}, or read {out / SUMMARY}")
    return ExitCode.DONE


def compare(runs: Sequence[pathlib.Path], out: pathlib.Path) -> ExitCode:
    """Draws the learning curves of runs in the terminal and as PNG."""
    from report.comparison import NothingToCompareError, compare_runs

    console = Console()
    try:
        text = compare_runs(
            runs,
            out,
            references=reference_scores(),
            warn=_warn,
            columns=console.width,
            color=console.file.isatty(),
        )
    except NothingToCompareError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"cannot write '{error.filename or out}': {error.strerror}") from None
    print(text)
    print(f"drawn to {out}")
    return ExitCode.DONE


def _warn(message: str) -> None:
    print(f"vantage: warning: {message}", file=sys.stderr)
