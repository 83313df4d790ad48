"""How this installation calls itself: suites and batch scripts."""

import sys


def vantage_command(*args: str) -> list[str]:
    """`vantage ARGS`, with the interpreter that runs this."""
    return [sys.executable, "-m", "launch", *args]
