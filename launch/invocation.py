"""How this installation calls itself: suites, batch scripts, isolated runs.

Standard library only: `launch.engines.isolate` needs it before anything else is imported.
"""

import sys


def vantage_command(*args: str) -> list[str]:
    """`vantage ARGS`, with the interpreter that runs this."""
    return [sys.executable, "-m", "launch", *args]
