"""`vantage report DIR`: a page on all runs of a folder, from their files."""

import pathlib

from actors.games import reference_scores
from launch.bounds import COUNT
from launch.errors import ExitCode, InputError
from launch.terminal import say, warn
from report.build import SUMMARY, NothingToReportError, build_report


def report(folder: pathlib.Path, out: pathlib.Path, resamples: int) -> ExitCode:
    """Writes the report on all runs at or below a folder."""
    COUNT.check(resamples=resamples)
    try:
        page = build_report(
            folder, out, references=reference_scores(), warn=warn, resamples=resamples
        )
    except NothingToReportError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"cannot write '{error.filename or out}': {error.strerror}") from None
    say(f"open {page}, or read {out / SUMMARY}")
    return ExitCode.DONE
