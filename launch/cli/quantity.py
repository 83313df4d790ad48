"""Large whole numbers on the command line: 200M, 50k, 1e6 or 200_000."""

import decimal
import re

_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
# Exponents of two digits: what follows must fit into memory before it can be out of bounds.
_NUMBER = re.compile(r"(?P<digits>-?\d[\d_]*(\.\d+)?(e\+?\d{1,2})?)(?P<suffix>[kMG]?)")


def parse_whole(text: str) -> int:
    """The number; raises ValueError, with the reason, for what is none or not whole."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is not a whole number; write it as 200M, 50k, 1e6 or 200000")
    number = decimal.Decimal(found["digits"]) * _SUFFIXES[found["suffix"]]
    if number != number.to_integral_value():
        raise ValueError(f"'{text}' is not a whole number")
    return int(number)
