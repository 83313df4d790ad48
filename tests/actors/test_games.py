"""The list of games and the scores that normalize returns."""

import pytest

from actors.games import UnknownGameError, check_game, human_normalized, reference_scores


def test_there_are_57_games_in_alphabetical_order() -> None:
    games = list(reference_scores())
    assert len(games) == 57
    assert games == sorted(games)


def test_every_human_beats_the_random_player_so_the_scale_is_never_upside_down() -> None:
    upside_down = [name for name, s in reference_scores().items() if s.human <= s.random]
    assert upside_down == []


def test_the_list_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        reference_scores()["pong"] = None  # type: ignore[index]


@pytest.mark.parametrize("game", ["pong", "ms_pacman", "up_n_down"])
def test_a_known_game_passes(game: str) -> None:
    assert check_game(game) == game


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("pongg", "did you mean pong"),
        ("MsPacman", "ms_pacman"),
        ("Breakout", "breakout"),
        ("zzzzzz", "names are like ms_pacman, pong"),
    ],
)
def test_an_unknown_game_is_named_with_its_nearest(wrong: str, hint: str) -> None:
    with pytest.raises(UnknownGameError, match=rf"'{wrong}' is not one of the 57.*{hint}"):
        check_game(wrong)


@pytest.mark.parametrize(
    ("score", "normalized"), [(-20.7, 0.0), (14.6, 1.0), (21.0, 41.7 / 35.3), (-21.0, -0.3 / 35.3)]
)
def test_pong_normalizes_between_minus_20_7_and_14_6(score: float, normalized: float) -> None:
    assert human_normalized("pong", score) == pytest.approx(normalized)
