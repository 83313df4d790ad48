"""The page: one HTML file with everything in it, for any browser, from a file or a server."""

import html
import json
import pathlib
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from report.aggregates import Aggregates
from report.duration import duration_text
from report.final_scores import WINDOW_FRAMES, Cell
from report.methods import Methods
from report.paper_table import Score
from report.runs import Run
from report.wording import (
    BEST_TEXT,
    difference_text,
    facts_text,
    rate_text,
    score_text,
    title_of,
)

_TEMPLATE = pathlib.Path(__file__).with_name("page.html")


class Contents(NamedTuple):
    """What the page shows; figures are SVG, by name."""

    methods: Methods
    cells: Sequence[Cell]
    aggregates: Aggregates | None
    notes: Sequence[str]
    figures: Mapping[str, str]
    captions: Mapping[str, str]


def render(contents: Contents) -> str:
    """The page as text."""
    sections = [
        ("aggregates", "All games together", _aggregates(contents)),
        ("scores", "Each game, beside the paper", _scores(contents)),
        ("games", "Learning curves", _games(contents)),
        ("runs", "Runs", _runs(contents)),
        ("configs", "Configs and versions", _configs(contents)),
    ]
    body = "".join(
        f'<section id="{name}"><h2>{title}</h2>{text}</section>' for name, title, text in sections
    )
    navigation = " ".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    return string.Template(_TEMPLATE.read_text()).substitute(
        title=html.escape(title_of(contents.methods)),
        facts=html.escape(facts_text(contents.methods)),
        navigation=navigation,
        body=_notes(contents.notes) + body,
    )


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    title = "<strong>To know before reading on</strong>"
    return f'<div class="notes" id="notes">{title}<ul>{items}</ul></div>'


def _aggregates(contents: Contents) -> str:
    aggregates = contents.aggregates
    if aggregates is None:
        return (
            "<p>No game with random and human scores has an evaluation of every method yet, so "
            "there is nothing to compare.</p>"
        )
    intro = (
        "Scores are human-normalized: 0 is a random player, 1 a human tester. Shaded are 95 % "
        "stratified bootstrap intervals over runs (rliable); games are not resampled. "
        f"Games counted: {', '.join(aggregates.games)}."
    )
    names = ("iqm", "aggregates", "profiles", "improvement")
    figures = "".join(_figure(contents, name) for name in names)
    return f"<p>{html.escape(intro)}</p>{figures}"


def _scores(contents: Contents) -> str:
    intro = (
        f"Mean ± standard error over runs of the score of the last {WINDOW_FRAMES // 10**6}M "
        "frames; a star marks runs shorter than that, scored by their second half. The paper's "
        "are its Table 1: 200M frames, full action set, human-normalized. The difference is ours "
        f"less theirs. {BEST_TEXT}"
    )
    columns = ["Game", "Method", "Runs", "Return", "Normalized", "Paper", "Difference"]
    rows = [
        [
            _text(cell.game),
            _text(cell.method),
            _number(cell.num_runs, str(cell.num_runs)),
            _score(cell.raw, star=cell.short_run, best=cell.best),
            _score(cell.normalized, star=cell.short_run, best=cell.best),
            _score(cell.paper),
            _number(cell.difference, difference_text(cell.difference)),
        ]
        for cell in contents.cells
    ]
    return f"<p>{html.escape(intro)}</p>" + _table(columns, rows, text_columns=2)


def _games(contents: Contents) -> str:
    names = [name for name in contents.figures if name.startswith("games/")]
    figures = "".join(_figure(contents, name) for name in names)
    return f'<div class="games">{figures}</div>' if names else "<p>No evaluation yet.</p>"


def _runs(contents: Contents) -> str:
    columns = ["Run", "Method", "Game", "Seed", "Frames", "Of", "Wall clock", "Frames/s"]
    rows = [
        [
            _text(run.name),
            _text(name),
            _text(run.game),
            _number(run.seed, str(run.seed)),
            _number(run.frames, f"{run.frames:,}"),
            _number(run.total_frames, f"{run.total_frames:,}"),
            _number(run.pace.seconds, duration_text(run.pace.seconds)),
            _number(run.pace.frames_per_second, rate_text(run.pace.frames_per_second)),
        ]
        for name, runs in contents.methods.items()
        for run in runs
    ]
    intro = "Wall clock counts from the learner's first report to its last, without the stops."
    return f"<p>{intro}</p>" + _table(columns, rows, text_columns=3)


def _configs(contents: Contents) -> str:
    runs = [run for members in contents.methods.values() for run in members]
    same, different = _split(runs, lambda run: run.settings)
    facts_same, facts_different = _split(runs, lambda run: run.facts)
    parts = [_details("Settings of all runs", same), _details("Versions and hardware", facts_same)]
    for run in runs:
        own = {name: run.settings.get(name) for name in different} | {
            name: run.facts.get(name) for name in facts_different
        }
        if own:
            parts.append(_details(run.name, own))
    return "".join(parts)


def _split(runs: Sequence[Run], values_of: Any) -> tuple[dict[str, Any], list[str]]:
    """What all runs have in common, and the names of what they have not."""
    names = dict.fromkeys(name for run in runs for name in values_of(run))
    distinct = {
        name: {json.dumps(values_of(run).get(name), sort_keys=True) for run in runs}
        for name in names
    }
    same = {name: values_of(runs[0]).get(name) for name in names if len(distinct[name]) == 1}
    return same, [name for name in names if name not in same]


def _details(title: str, values: Mapping[str, Any]) -> str:
    rows = [
        [_text(name), _text(value if isinstance(value, str) else json.dumps(value))]
        for name, value in _flat(values)
    ]
    table = _table(["Name", "Value"], rows, text_columns=2)
    return f"<details><summary>{html.escape(title)}</summary>{table}</details>"


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _figure(contents: Contents, name: str) -> str:
    if name not in contents.figures:
        return ""
    files = " ".join(
        f'<a href="{html.escape(name)}.{suffix}">{suffix.upper()}</a>' for suffix in ("svg", "png")
    )
    caption = f"{html.escape(contents.captions[name])}. {files}"
    return f"<figure>{contents.figures[name]}<figcaption>{caption}</figcaption></figure>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int) -> str:
    head = "".join(
        f'<th scope="col"{_class(index < text_columns)}><button>{html.escape(column)}</button></th>'
        for index, column in enumerate(columns)
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _class(is_text: bool) -> str:
    return ' class="text"' if is_text else ""


def _text(value: str) -> str:
    return f'<td class="text">{html.escape(value)}</td>'


def _number(value: float | None, shown: str, *, best: bool = False) -> str:
    # An empty value sorts last; NaN is no number either.
    sort_key = "" if value is None or value != value else repr(float(value))
    text = f"<strong>{html.escape(shown)}</strong>" if best else html.escape(shown)
    return f'<td data-value="{sort_key}">{text}</td>'


def _score(score: Score | None, *, star: bool = False, best: bool = False) -> str:
    value = None if score is None else score.mean
    return _number(value, score_text(score, star=star), best=best and score is not None)
