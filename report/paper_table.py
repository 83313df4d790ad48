"""The paper's Table 1: human-normalized scores after 200M frames, full action set."""

import csv
import functools
import pathlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

_TABLE = pathlib.Path(__file__).with_name("paper_table1.csv")


class Score(NamedTuple):
    """Mean and standard error over runs; None where there is only one run."""

    mean: float
    stderr: float | None


def statistically_best(scores: Sequence[Score]) -> list[bool]:
    """Which scores the paper's table would print in bold: its caption's rule.

    The highest mean, and every other whose interval overlaps that one's. The interval is the mean
    plus and minus one standard error, as the table prints it: it gives the paper's own bold in 47
    of 56 games, two standard errors in 25. Without an error on every score, and without a second
    score, nothing is called best.
    """
    errors = [score.stderr for score in scores if score.stderr is not None]
    if len(errors) < len(scores) or len(scores) < 2:
        return [False] * len(scores)
    highest = max(range(len(scores)), key=lambda index: scores[index].mean)
    least = scores[highest].mean - errors[highest]
    return [score.mean + error >= least for score, error in zip(scores, errors, strict=True)]


@functools.cache
def paper_scores() -> Mapping[tuple[str, str], Score]:
    """By (game, algorithm). The paper has 56 of the 57 games (no kung_fu_master)."""
    with _TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return MappingProxyType(
        {
            (row["game"], column.removesuffix("_mean")): Score(
                float(row[column]), float(row[column.replace("_mean", "_stderr")])
            )
            for row in rows
            for column in row
            if column.endswith("_mean")
        }
    )


def paper_algorithms() -> list[str]:
    """The algorithms of the table, in the order of its columns."""
    return list(dict.fromkeys(algorithm for _, algorithm in paper_scores()))
