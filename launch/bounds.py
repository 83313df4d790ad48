"""Refuses numbers out of their bounds, always in the same words."""

from launch.errors import InputError

MAX_SEED = 2**31 - 1


def check_at_least_one(**values: int | None) -> None:
    """None stands for what was not asked for."""
    for name, value in values.items():
        if value is not None and value < 1:
            raise InputError(f"{name}={value} must be at least 1")


def check_positive(**values: float | None) -> None:
    """A NaN is refused too."""
    for name, value in values.items():
        if value is not None and not value > 0:
            raise InputError(f"{name}={value} must be greater than 0")


def check_within(low: float, high: float, **values: float) -> None:
    """Both bounds are allowed."""
    for name, value in values.items():
        if not low <= value <= high:
            raise InputError(f"{name}={value} must lie between {low} and {high}")
