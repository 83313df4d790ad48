"""What the figures show against what the paper says, decided from the numbers of the run.

Every claim is judged at every point of the curves, so that it can be said of the fixed budget, of
convergence, and of the updates between which it holds.
"""

from typing import NamedTuple

from tabular.claims import CLAIMS, Claim, Judged
from tabular.summary import Summary


class Reading(NamedTuple):
    """A claim beside what this run measured."""

    claim: Claim
    at_budget: Judged
    at_convergence: Judged
    holds: str  # between which updates it agrees


def read(summary: Summary) -> list[Reading]:
    """All claims on one reading of the gradient."""
    readings = []
    for claim in CLAIMS:
        part = summary[claim.part]
        updates = part["updates"]
        judged = [claim.judge(part, point) for point in range(1, len(updates))]
        agrees = [seen.verdict == "Agrees" for seen in judged]
        budget = updates.index(summary["budget_updates"])
        at_budget = judged[budget - 1]
        readings.append(Reading(claim, at_budget, judged[-1], ranges(updates[1:], agrees)))
    return readings


def most_at_once(summary: Summary) -> tuple[int, int]:
    """The updates after which most claims agree, and how many do then."""
    agreeing: dict[int, int] = {}
    for claim in CLAIMS:
        part = summary[claim.part]
        for point, updates in enumerate(part["updates"][1:], start=1):
            agrees = claim.judge(part, point).verdict == "Agrees"
            agreeing[updates] = agreeing.get(updates, 0) + agrees
    best = max(agreeing, key=lambda updates: agreeing[updates])
    return best, agreeing[best]


def ranges(updates: list[int], holds: list[bool]) -> str:
    """Between which updates something holds, as text."""
    spans: list[list[int]] = []
    for i, is_so in enumerate(holds):
        if is_so and (i == 0 or not holds[i - 1]):
            spans.append([i, i])
        elif is_so:
            spans[-1][1] = i
    return ", ".join(_span(updates, *span) for span in spans) if spans else "never"


def _span(updates: list[int], first: int, last: int) -> str:
    if last == len(updates) - 1:
        return f"from {updates[first]:,} on"
    if first == last:
        return f"at {updates[first]:,}"
    return f"{updates[first]:,} to {updates[last]:,}"
