"""Numbers and facts in words, the same on the page and in the Markdown summary."""

import math
from collections.abc import Sequence

from report.aggregates import Aggregates, Estimate
from report.counted import counted
from report.duration import duration_text
from report.methods import Methods, games_of
from report.paper_table import Score
from report.runs import Run

_NONE = "–"


BEST_TEXT = (
    "Bold is the highest mean of a game and, as in the paper, every other whose interval of one "
    "standard error overlaps its own."
)


def title_of(methods: Methods) -> str:
    """What the report is about, in a line."""
    games = games_of(_all(methods))
    on = games[0] if len(games) == 1 else f"{len(games)} Atari games"
    return (
        f"{', '.join(methods)} on {on}" if len(methods) <= 4 else f"{len(methods)} methods on {on}"
    )


def facts_text(methods: Methods) -> str:
    """How many runs there are, and how long they trained."""
    runs = _all(methods)
    finished = sum(run.finished for run in runs)
    longest = max(run.frames for run in runs)
    trained = duration_text(sum(run.pace.seconds for run in runs))
    return (
        f"{counted(len(runs), 'run')}, {finished} finished; "
        f"up to {longest:,} frames each; {trained} of training in all."
    )


def score_text(score: Score | None, *, star: bool = False) -> str:
    """Mean ± standard error, in three or four figures."""
    if score is None:
        return _NONE
    digits = 0 if abs(score.mean) >= 1000 else 1 if abs(score.mean) >= 100 else 2
    error = "" if score.stderr is None else f" ± {score.stderr:,.{digits}f}"
    return f"{score.mean:,.{digits}f}{error}{'*' if star else ''}"


def difference_text(difference: float | None) -> str:
    """The difference with its sign."""
    return _NONE if difference is None else f"{difference:+.2f}"


def estimate_text(estimate: Estimate, index: int) -> str:
    """A value with its interval."""
    value, low, high = (float(column[index]) for column in estimate)
    return f"{value:.3f}" if low != low else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def rate_text(per_second: float) -> str:
    """A whole number, or nothing where it could not be measured."""
    return _NONE if math.isnan(per_second) else f"{per_second:,.0f}"


def notes_on(methods: Methods, aggregates: Aggregates | None) -> list[str]:
    """What limits the conclusions, in sentences."""
    runs = _all(methods)
    notes = []
    unfinished = [run for run in runs if not run.finished]
    if unfinished:
        notes.append(
            f"{len(unfinished)} of {counted(len(runs), 'run')} not finished: "
            "each is shown as far as it is."
        )
    restricted = sum(not run.settings.get("full_action_set", False) for run in runs)
    if restricted:
        notes.append(
            f"{restricted} of {counted(len(runs), 'run')} with the restricted action set; the "
            "paper's Table 1 is of the full one."
        )
    sticky = sum(bool(run.settings.get("sticky_actions")) for run in runs)
    if sticky:
        notes.append(
            f"{sticky} of {counted(len(runs), 'run')} with sticky actions; the paper's Table 1 is "
            "without."
        )
    if aggregates is None:
        return notes
    played = games_of(runs)
    if len(aggregates.games) < len(played):
        left_out = sorted(set(played) - set(aggregates.games))
        notes.append(
            f"Aggregates count {counted(len(aggregates.games), 'game')}, of which every method "
            f"has an evaluation, and not {', '.join(left_out)}."
        )
    counts = {count for of_game in aggregates.num_runs.values() for count in of_game}
    if counts == {1}:
        notes.append("There is one run per game and method: no intervals can be given.")
    elif aggregates.uneven:
        notes.append(
            f"Games have from {min(counts)} to {max(counts)} runs: all are counted, so some games "
            "weigh more than others in the aggregates."
        )
    if len(aggregates.games) < 5:
        notes.append(
            f"Aggregates over {len(aggregates.games)} of 57 games say little about the others."
        )
    return notes


def _all(methods: Methods) -> Sequence[Run]:
    return [run for runs in methods.values() for run in runs]
