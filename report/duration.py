"""Lengths of time in words."""


def duration_text(seconds: float) -> str:
    """The two largest units: '2d 3h', '3h 05m', '5m 09s', '9s'."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour}h"
    if hours:
        return f"{hour}h {minute:02d}m"
    return f"{minute}m {second:02d}s" if minutes else f"{second}s"
