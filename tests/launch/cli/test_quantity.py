"""Large whole numbers on the command line."""

import pytest

from launch.cli.argv import parse_train
from launch.cli.quantity import parse_whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("200M", 200_000_000),
        ("50k", 50_000),
        ("1G", 10**9),
        ("1e6", 1_000_000),
        ("2.5M", 2_500_000),
        ("200_000", 200_000),
        ("7", 7),
        ("-3", -3),
    ],
)
def test_a_number_may_have_a_suffix_or_an_exponent(text: str, number: int) -> None:
    assert parse_whole(text) == number


@pytest.mark.parametrize("text", ["", "M", "2.5", "1e-3", "200m", "1e999", "nan", "0x10", "1 M"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        parse_whole(text)


def test_flags_of_frames_and_steps_take_them() -> None:
    flags = ["--frames", "200M", "--warmup-steps", "20k", "--epsilon-decay-frames", "1e6"]
    config = parse_train([*flags, "--max-episode-frames", "108k"]).config
    assert (config.frames, config.replay.warmup_steps) == (200_000_000, 20_000)
    assert config.actor.epsilon_decay_frames == 1_000_000
    assert config.environment.max_episode_frames == 108_000
    assert parse_train(["--epsilon-decay-frames", "None"]).config.actor.epsilon_decay_frames is None


@pytest.mark.parametrize("text", ["many", "0.5", "-1k"])
def test_a_flag_says_what_is_wrong_with_its_number(refuse, text: str) -> None:
    assert text.strip("-1k") in refuse("train", f"--frames={text}")


@pytest.mark.parametrize("flag", ["schedule-frames", "eval-frames", "epsilon-decay-frames"])
def test_numbers_that_may_be_none_keep_their_bounds(refuse, flag: str) -> None:
    assert f"{flag.replace('-', '_')}=-5000" in refuse("train", f"--{flag}=-5k")
