"""The 57 Atari games, with the random and human scores that normalize returns."""

import csv
import difflib
import functools
import pathlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_SCORES = pathlib.Path(__file__).with_name("atari57_scores.csv")


class ReferenceScores(NamedTuple):
    """Scores of a random player and of a human tester."""

    random: float
    human: float


class UnknownGameError(ValueError):
    """A game that is not one of the 57."""


@functools.cache
def reference_scores() -> Mapping[str, ReferenceScores]:
    """All games by name, in alphabetical order."""
    with _SCORES.open(newline="") as f:
        rows = list(csv.DictReader(f))
    scores = {r["game"]: ReferenceScores(float(r["random"]), float(r["human"])) for r in rows}
    return MappingProxyType(scores)


def canonical_name(game: str) -> str:
    """The name in snake case, however it is written: Pong, MsPacman, ms-pacman, "Ms. Pacman".

    What is not one of the 57 stays as it is.
    """
    return _by_letters().get(_letters(game), game)


@functools.cache
def _by_letters() -> Mapping[str, str]:
    return MappingProxyType({_letters(game): game for game in reference_scores()})


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def check_game(game: str) -> str:
    """Returns `game` if it is one of the 57, else raises with the nearest names."""
    games = reference_scores()
    if game in games:
        return game
    nearest = difflib.get_close_matches(game.lower(), games, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(nearest)}?" if nearest else "names are like ms_pacman, pong"
    raise UnknownGameError(f"game '{game}' is not one of the {len(games)} Atari games: {hint}")


def human_normalized(game: str, score: float) -> float:
    """0 is the random player, 1 the human tester."""
    reference = reference_scores()[game]
    return (score - reference.random) / (reference.human - reference.random)
