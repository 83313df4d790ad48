"""The paper's Table 1: human-normalized scores after 200M frames, full action set."""

import csv
import functools
import pathlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_TABLE = pathlib.Path(__file__).with_name("paper_table1.csv")


class Score(NamedTuple):
    """Mean and standard error over runs; None where there is only one run."""

    mean: float
    stderr: float | None


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
