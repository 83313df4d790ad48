"""`vantage watch`: a checkpoint, shown."""

import imageio.v2 as imageio
import numpy as np
import pytest

from launch import build
from launch.cli import main as cli
from launch.commands.watch.command import make_think
from learner.acting import acting_params
from tests.launch.tiny_run import tiny_config


@pytest.mark.filterwarnings("ignore:os.fork")  # reading the video starts ffmpeg
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_video_shows_the_screen_and_the_panel(scored_run, tmp_path, suffix, capsys):
    out = tmp_path / "new" / f"pong{suffix}"
    command = ["watch", str(scored_run), "--out", str(out), "--overlay", "--max-seconds", "1"]
    assert cli.run(command) == 0
    assert f"written to {out}" in capsys.readouterr().out
    pictures = [np.asarray(picture) for picture in imageio.get_reader(out)]
    # A gif holds a picture that does not change once, for longer.
    assert len(pictures) == 15 if suffix == ".mp4" else 1 <= len(pictures) <= 15
    assert pictures[0].shape[:2] == (420, 320 + 288)
    assert pictures[0][:, :320].std() > 5 and pictures[0][:, 320:].std() > 5
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("algorithm", ["va", "dueling", "q"])
def test_a_thought_has_what_its_algorithm_has(algorithm):
    config = tiny_config(algorithm=algorithm)
    state, _ = build.make_learner(config)
    thought = make_think(config, state.params)(np.zeros((4, 84, 84), np.uint8))
    assert (thought.value is None) == (algorithm == "q")
    assert (thought.behavior is None) == (algorithm != "va")
    assert thought.advantage.shape == (6,)
    if thought.behavior is not None:
        assert thought.behavior.sum() == pytest.approx(1.0, abs=1e-5)
        assert (thought.advantage * thought.behavior).sum() == pytest.approx(0.0, abs=1e-5)


def test_a_thought_of_what_acts_alone_is_the_same_but_for_v_and_mu():
    config, stack = tiny_config(), np.random.default_rng(0).integers(0, 255, (4, 84, 84), np.uint8)
    state, _ = build.make_learner(config)
    whole = make_think(config, state.params)(stack)
    acting = make_think(config, acting_params(state.params))(stack)
    assert (acting.value, acting.behavior, acting.action) == (None, None, whole.action)
    assert not acting.is_q
    np.testing.assert_allclose(
        acting.advantage, whole.advantage - whole.advantage.mean(), atol=1e-5
    )


def test_bad_input_is_refused_in_one_line(scored_run, tmp_path, refuse, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert "seed=-1" in refuse("watch", str(scored_run), "--seed", "-1")
    assert ".mp4 or .gif" in refuse("watch", str(scored_run), "--out", "x.avi")
    assert "no display" in refuse("watch", str(scored_run))
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "x.mp4")
    assert "cannot write" in refuse("watch", str(scored_run), "--out", out)
