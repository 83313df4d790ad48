"""Which runs are runs of the same thing: an algorithm, and where settings differ, those too.

Runs of one algorithm with other settings (an ablation, another network) are never pooled: each
combination is a method of its own, named by what is different. A protocol that is not the usual one
(sticky actions) is named always: its scores are not those of the paper's Table 1.
"""

from collections.abc import Mapping, Sequence

from report.config_fields import OPERATIONAL_FIELDS, USUAL_PROTOCOL
from report.paper_table import paper_algorithms
from report.plain_text import file_name
from report.runs import Run, Warn

# What may differ between runs of one method; the name of the method says the algorithm.
_NOT_A_SETTING = OPERATIONAL_FIELDS | {"game", "seed", "algorithm", "schedule_frames"}
Methods = Mapping[str, Sequence[Run]]
_MAX_SETTINGS = 200


def methods_of(runs: Sequence[Run], warn: Warn) -> Methods:
    """Runs by the name of their method: the paper's algorithms first, then by the alphabet."""
    methods: dict[str, list[Run]] = {}
    found = {run.algorithm for run in runs}
    papers = [algorithm for algorithm in paper_algorithms() if algorithm in found]
    for algorithm in [*papers, *sorted(found.difference(papers))]:
        own = [run for run in runs if run.algorithm == algorithm]
        named = _settings_to_name(own)
        for run in own:
            methods.setdefault(_name(run, named), []).append(run)
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


def _settings_to_name(runs: Sequence[Run]) -> list[str]:
    """A run without a field is older than the field, and was run as its default says."""
    values: dict[str, set[str]] = {}
    for run in runs:
        for name, value in run.settings.items():
            values.setdefault(name, set()).add(repr(value))
    different = {name for name in values.keys() - _NOT_A_SETTING if len(values[name]) > 1}
    unusual = {
        name
        for name, usual in USUAL_PROTOCOL.items()
        if any(run.settings.get(name) != usual for run in runs)
    }
    return sorted(different | unusual)


def _name(run: Run, named: Sequence[str]) -> str:
    if not named:
        return run.algorithm
    settings = ", ".join(f"{name}={run.settings.get(name)}" for name in named)
    if len(settings) > _MAX_SETTINGS:
        # Too long for a legend; what follows is the same for the same settings and for no other.
        settings = f"{settings[:_MAX_SETTINGS]}... {file_name(settings)[-8:]}"
    return f"{run.algorithm} ({settings})"


def _warn_of_twins(name: str, runs: Sequence[Run], warn: Warn) -> None:
    seen: dict[tuple[str, int], Run] = {}
    for run in runs:
        twin = seen.setdefault((run.game, run.seed), run)
        if twin is not run:
            warn(
                f"{run.path} and {twin.path} are both {name} on {run.game} with seed {run.seed}; "
                "both are counted"
            )
