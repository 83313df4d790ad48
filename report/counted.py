"""Numbers of things in a sentence: 1 run, 2 runs."""


def counted(number: int, noun: str) -> str:
    """The number with its noun, in the singular where it is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
