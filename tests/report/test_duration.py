"""Lengths of time in words."""

import pytest

from report.duration import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(9.9, "9s"), (309, "5m 09s"), (11_100, "3h 05m"), (184_000, "2d 3h")],
)
def test_durations_have_two_units(seconds, text):
    assert duration_text(seconds) == text
