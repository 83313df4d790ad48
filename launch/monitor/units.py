"""Numbers with their units, short enough for a table; what has not been reported is a dash."""

UNKNOWN = "-"


def format_count(count: float) -> str:
    """12345678 -> '12.35M': four digits are enough to see it move."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.4g}{unit}"
    return f"{count:.0f}"


def format_bytes(count: float) -> str:
    """Decimal units, as disks and `df -H` have them."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def format_number(value: float | None, format_spec: str) -> str:
    """A number that may not be known."""
    return UNKNOWN if value is None else format(value, format_spec)


def format_seconds(value: float | None) -> str:
    """A short time that may not be known; long ones are `report.duration`."""
    return UNKNOWN if value is None else f"{value:.1f} s"


def format_percent(fraction: float | None) -> str:
    """A share that may not be known, without decimals."""
    return UNKNOWN if fraction is None else f"{fraction:.0%}"
