"""Bounds of numbers: written beside a config's field, and refused always in the same words."""

import dataclasses
import math

from launch.errors import InputError


@dataclasses.dataclass(frozen=True)
class Bounds:
    """The numbers that make sense; NaN never does, and infinity only where `finite` is off."""

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    finite: bool = False

    def check(self, **values: float | None) -> None:
        """Raises InputError for the first value out of bounds; None stands for "not given"."""
        for name, value in values.items():
            reason = None if value is None else self._reason_against(value)
            if reason is not None:
                raise InputError(f"{name}={value} must be {reason}")

    def _reason_against(self, value: float) -> str | None:
        # Negated, because every comparison with NaN is false.
        if self.at_least is not None and not value >= self.at_least:
            return f"at least {self.at_least}"
        if self.above is not None and not value > self.above:
            return f"greater than {self.above}"
        if self.at_most is not None and not value <= self.at_most:
            return f"at most {self.at_most}"
        if self.finite and math.isinf(value):
            return "finite"
        return None


# An int32 on the device, or in the emulator.
COUNT = Bounds(1, 2**31 - 1)
FRAMES = Bounds(1, 2**62)
POSITIVE = Bounds(above=0)
SHARE = Bounds(0, 1)
SEED = Bounds(0, 2**31 - 1)
