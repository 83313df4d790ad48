"""Time limits as sbatch reads them."""

import re

_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<rest>\d+(?::\d+){0,2})")


def time_limit_seconds(time: str) -> int | None:
    """A time limit as sbatch reads it; None if it is no number (`UNLIMITED`, or a mistake)."""
    found = _TIME.fullmatch(time)
    if found is None:
        return None
    numbers = [int(number) for number in found["rest"].split(":")]
    if found["days"] is not None:
        # days-hours[:minutes[:seconds]]
        hours, minutes, seconds = [*numbers, 0, 0][:3]
        return 86400 * int(found["days"]) + 3600 * hours + 60 * minutes + seconds
    if len(numbers) < 3:
        # minutes[:seconds]
        minutes, seconds = [*numbers, 0][:2]
        return 60 * minutes + seconds
    return 3600 * numbers[0] + 60 * numbers[1] + numbers[2]
