"""What a command says when it goes on without something."""

import sys


def print_warning(message: str) -> None:
    """One line on stderr."""
    print(f"vantage: warning: {message}", file=sys.stderr)
