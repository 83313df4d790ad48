"""One fault, and how it went."""

from collections.abc import Callable
from typing import NamedTuple

from tests.launch.live_run import NotRecoveredError


class Round(NamedTuple):
    """How one fault went."""

    fault: str
    seconds: float | None  # to recover; None if it did not
    lost: int = 0  # transitions that were in replay before and were not afterwards
    checked: int = 0  # synthetic items found whole
    problem: str = ""


def judged(fault: str, attempt: Callable[[], Round]) -> Round:
    """The round, or why it did not come to its end."""
    try:
        return attempt()
    except (NotRecoveredError, AssertionError) as error:
        return Round(fault, None, problem=str(error).partition("\n")[0])
