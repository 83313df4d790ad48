"""Lines for the user of a run that is under way."""


def note(message: str) -> None:
    """Prints a line at once; a live view lets it scroll by above itself."""
    print(message, flush=True)
