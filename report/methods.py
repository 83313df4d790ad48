"""Which runs are runs of the same thing: an algorithm, and where settings differ, those too.

Runs of one algorithm with other settings (an ablation, another network) are never pooled: each
combination is a method of its own, named by what is different.
"""

from collections.abc import Mapping, Sequence

from report.operational_fields import OPERATIONAL_FIELDS
from report.runs import Run, Warn

# The paper's order; other names follow in alphabetical order.
_ORDER = ("va", "behavior_dueling", "dueling", "q")
# What may differ between runs of one method; the name of the method says the algorithm.
_NOT_A_SETTING = OPERATIONAL_FIELDS | {"game", "seed", "algorithm"}
Methods = Mapping[str, Sequence[Run]]


def methods_of(runs: Sequence[Run], warn: Warn) -> Methods:
    """Runs by the name of their method."""
    methods: dict[str, list[Run]] = {}
    for algorithm in sorted({run.algorithm for run in runs}, key=_rank):
        own = [run for run in runs if run.algorithm == algorithm]
        different = _settings_that_differ(own)
        for run in own:
            methods.setdefault(_name(run, different), []).append(run)
    for name, members in methods.items():
        _warn_of_twins(name, members, warn)
    return methods


def games_of(runs: Sequence[Run]) -> list[str]:
    """All games, in alphabetical order."""
    return sorted({run.game for run in runs})


def runs_by_game(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that have an evaluation, by game."""
    return {
        game: found
        for game in games_of(runs)
        if (found := [run for run in runs if run.game == game and len(run.evaluations.frames)])
    }


def _settings_that_differ(runs: Sequence[Run]) -> list[str]:
    names = sorted({name for run in runs for name in run.settings} - _NOT_A_SETTING)
    return [name for name in names if len({repr(run.settings.get(name)) for run in runs}) > 1]


def _name(run: Run, different: Sequence[str]) -> str:
    if not different:
        return run.algorithm
    return (
        f"{run.algorithm} ({', '.join(f'{name}={run.settings.get(name)}' for name in different)})"
    )


def _rank(algorithm: str) -> tuple[int, str]:
    return (_ORDER.index(algorithm) if algorithm in _ORDER else len(_ORDER), algorithm)


def _warn_of_twins(name: str, runs: Sequence[Run], warn: Warn) -> None:
    seen: dict[tuple[str, int], Run] = {}
    for run in runs:
        twin = seen.setdefault((run.game, run.seed), run)
        if twin is not run:
            warn(
                f"{run.path} and {twin.path} are both {name} on {run.game} with seed {run.seed}; "
                "both are counted"
            )
