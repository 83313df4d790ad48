"""The paper's search for a learning rate (Appendix C), as a function of the scores known so far.

From a rate beta, beta / 3 and 3 beta are tried, the better of them becomes beta if it improves the
score, and so on until neither improves it. Rates are whole exponents k of 3: the rate is
start * 3**k. The search is replayed from its start whenever a score is added, so it has no state
of its own that could be lost, and no rate is ever tried twice.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

FACTOR = 3.0


class Standing(NamedTuple):
    """Where a search is: what it must know next, or why it is over."""

    best: int  # exponent of the rate it has moved to
    moves: int
    needed: tuple[int, ...]  # exponents to score before it can go on; none when it is over
    ended: Literal["neither improves", "no moves left"] | None


def stand(scores: Mapping[int, float], *, max_moves: int) -> Standing:
    """Follows the search as far as the scores go; a tie keeps the rate, and the lower neighbor."""
    best, moves = 0, 0
    while moves < max_moves:
        lower, higher = best - 1, best + 1
        needed = tuple(k for k in (lower, best, higher) if k not in scores)
        if needed:
            return Standing(best, moves, needed, None)
        better = lower if scores[lower] >= scores[higher] else higher
        if scores[better] <= scores[best]:
            return Standing(best, moves, (), "neither improves")
        best, moves = better, moves + 1
    return Standing(best, moves, (), "no moves left")


def rate_of(start: float, exponent: int) -> float:
    """The rate in three figures, as flags and folders name it; the start is kept as it is."""
    return start if exponent == 0 else float(f"{start * FACTOR**exponent:.3g}")
