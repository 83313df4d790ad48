"""The report in Markdown: the aggregates and the per-game table, for an issue or a commit."""

import re
from collections.abc import Sequence

from report.aggregates import AGGREGATES, Aggregates, best_of
from report.final_scores import WINDOW_FRAMES, Cell
from report.methods import Methods
from report.wording import (
    BEST_TEXT,
    difference_text,
    estimate_text,
    facts_text,
    score_text,
    title_of,
)


def render(
    methods: Methods, cells: Sequence[Cell], aggregates: Aggregates | None, notes: Sequence[str]
) -> str:
    """The summary as text."""
    parts = [f"# {_as_text(title_of(methods))}", facts_text(methods)]
    if notes:
        parts.append("\n".join(f"- {_as_text(note)}" for note in notes))
    if aggregates is not None:
        parts += [
            "## All games together",
            "Human-normalized; in brackets 95 % stratified bootstrap intervals over runs. Bold is "
            "the best method and every other whose interval overlaps its own.",
            _aggregates(aggregates),
            "![IQM against frames](iqm.png)",
        ]
        if aggregates.improvement:
            parts.append(_improvement(aggregates))
    parts += [
        "## Each game",
        f"Mean ± standard error over runs of the last {WINDOW_FRAMES // 10**6}M frames; * marks "
        "runs shorter than that, scored by their second half. The paper's are its Table 1 "
        f"(200M frames, full action set, human-normalized). {BEST_TEXT}",
        _scores(cells),
    ]
    return "\n\n".join(parts) + "\n"


def _aggregates(aggregates: Aggregates) -> str:
    best = [best_of(aggregates.final, index) for index in range(len(AGGREGATES))]
    rows = [
        [
            _as_text(name),
            *(_bold(estimate_text(estimate, i), name in best[i]) for i in range(len(AGGREGATES))),
        ]
        for name, estimate in aggregates.final.items()
    ]
    return _table(["method", *(kind.replace("_", " ") for kind in AGGREGATES)], rows)


def _improvement(aggregates: Aggregates) -> str:
    rows = [
        [_as_text(f"{x} > {y}"), estimate_text(probability, 0)]
        for (x, y), probability in aggregates.improvement.items()
    ]
    return _table(["improvement", "probability"], rows)


def _scores(cells: Sequence[Cell]) -> str:
    rows = [
        [
            _as_text(cell.game),
            _as_text(cell.method),
            str(cell.num_runs),
            _bold(score_text(cell.raw, star=cell.short_run), cell.best),
            _bold(score_text(cell.normalized, star=cell.short_run), cell.best),
            score_text(cell.paper),
            difference_text(cell.difference),
        ]
        for cell in cells
    ]
    return _table(["game", "method", "runs", "return", "normalized", "paper", "difference"], rows)


def _bold(text: str, is_best: bool) -> str:
    # The star of a short run is no end of bold.
    return f"**{text.replace('*', chr(92) + '*')}**" if is_best else text


def _as_text(names: str) -> str:
    """Names as Markdown shows them: no tag, link or code, and no end of a cell."""
    return re.sub(r"[|<\[`\\]", r"\\\g<0>", names)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
