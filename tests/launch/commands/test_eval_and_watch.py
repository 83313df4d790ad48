"""`vantage eval` and `vantage watch`: the newest checkpoint, scored and shown."""

import dataclasses
import json

import imageio.v2 as imageio
import numpy as np
import pytest

from actors.environment import AtariBatch
from actors.screen import SCREEN_SHAPE, ColorTwin
from launch import build
from launch.cli import main as cli
from launch.commands.evaluate import mean_interval
from launch.commands.watch.command import make_think
from launch.commands.watch.overlay import Overlay, Thought
from launch.learner_state import save
from launch.run_dir import RunDir
from learner.checkpoint import Checkpointer
from learner.step_counter import StepCounter
from tests.launch.tiny_run import tiny_config


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run directory with a checkpoint of untrained parameters."""
    run_dir = RunDir(tmp_path_factory.mktemp("runs") / "run")
    config = tiny_config()
    run_dir.create(config)
    state, _ = build.make_learner(config)
    save(Checkpointer(run_dir.checkpoints), state, StepCounter(total=400, last_inserts=400))
    return run_dir.root


def test_an_evaluation_is_raw_and_normalized_with_intervals(run, capsys):
    assert cli.run(["eval", str(run), "--episodes", "3", "--epsilon", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["frames"], len(found["returns"])) == (1600, 3)
    raw, normalized = found["return"], found["human_normalized"]
    assert raw["mean"] == pytest.approx(np.mean(found["returns"]))
    assert raw["low"] <= raw["mean"] <= raw["high"]
    assert normalized["mean"] == pytest.approx((raw["mean"] + 20.7) / (14.6 + 20.7))


def test_an_evaluation_can_be_read_by_people(run, capsys):
    assert cli.run(["eval", str(run), "--episodes", "1"]) == 0
    said = capsys.readouterr().out
    assert "va on pong, 1,600 frames" in said and "one episode: no interval" in said


def test_the_interval_of_a_mean_is_that_of_a_normal_one_for_many_episodes():
    returns = np.random.default_rng(0).normal(5.0, 2.0, 400)
    found = mean_interval(returns, seed=0)
    half = 1.96 * returns.std(ddof=1) / np.sqrt(400)
    assert found.mean == pytest.approx(returns.mean())
    assert found.low == pytest.approx(found.mean - half, abs=0.02)
    assert found.high == pytest.approx(found.mean + half, abs=0.02)
    assert mean_interval(np.full(5, 3.0), seed=0) == (3.0, 3.0, 3.0)


@pytest.mark.filterwarnings("ignore:os.fork")  # reading the video starts ffmpeg
@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_video_shows_the_screen_and_the_panel(run, tmp_path, suffix, capsys):
    out = tmp_path / "new" / f"pong{suffix}"
    command = ["watch", str(run), "--out", str(out), "--overlay", "--max-seconds", "1"]
    assert cli.run(command) == 0
    assert f"written to {out}" in capsys.readouterr().out
    pictures = [np.asarray(picture) for picture in imageio.get_reader(out)]
    # A gif holds a picture that does not change once, for longer.
    assert len(pictures) == 15 if suffix == ".mp4" else 1 <= len(pictures) <= 15
    assert pictures[0].shape[:2] == (420, 320 + 288)
    assert pictures[0][:, :320].std() > 5 and pictures[0][:, 320:].std() > 5
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_the_color_twin_plays_the_agents_own_game():
    options = {"full_action_set": False, "action_repeat": 4, "max_episode_frames": 2000}
    batch = AtariBatch("breakout", num_envs=1, seed=5, max_noops=30, **options)
    twin = ColorTwin("breakout", seed=5, max_noops=30, **options)
    batch.reset()
    assert twin.reset().pixels.shape == SCREEN_SHAPE
    assert twin.action_names == ["NOOP", "FIRE", "RIGHT", "LEFT"]
    rng, total = np.random.default_rng(0), 0.0
    for action in rng.integers(0, 4, 300):
        timestep, screen = batch.step(np.array([action])), twin.step(int(action))
        assert screen.score == timestep.observation.score[0]
        total += screen.score
    assert total > 0
    # The same picture too, as far as gray says.
    gray = screen.pixels @ np.array([0.299, 0.587, 0.114])
    small = timestep.observation.stack[0, -1]
    assert abs(gray.mean() - small.mean()) < 3
    batch.close(), twin.close()


@pytest.mark.parametrize("algorithm", ["va", "dueling", "q"])
def test_a_thought_has_what_its_algorithm_has(algorithm):
    config = tiny_config(algorithm=algorithm)
    state, _ = build.make_learner(config)
    thought = make_think(config, state.params)(np.zeros((4, 84, 84), np.uint8))
    assert (thought.value is None) == (algorithm == "q")
    assert (thought.behaviour is None) == (algorithm != "va")
    assert thought.advantage.shape == (6,)
    if thought.behaviour is not None:
        assert thought.behaviour.sum() == pytest.approx(1.0, abs=1e-5)
        assert (thought.advantage * thought.behaviour).sum() == pytest.approx(0.0, abs=1e-5)


def test_bars_have_the_length_of_their_values():
    overlay = Overlay(["NOOP", "FIRE"], "title")
    screen = np.zeros(SCREEN_SHAPE, np.uint8)
    thought = Thought(0.5, np.array([1.0, -0.5]), np.array([0.75, 0.25]), action=0, greedy=True)
    panel = overlay.draw(screen, thought, score=3.0)[:, 320:]
    green = (panel == (0x56, 0xD3, 0x64)).all(axis=2)[75:]
    widths = [row.sum() for row in green if row.any()]
    assert max(widths) == pytest.approx(3 * min(widths), rel=0.1)
    blue = (panel == (0x58, 0xA6, 0xFF)).all(axis=2)[75:]
    upper, lower = blue[:20].any(axis=0), blue[20:].any(axis=0)
    assert upper.nonzero()[0].min() > lower.nonzero()[0].max() - 2


def refuse(capsys, *args):
    assert cli.run(args) == 2
    message = capsys.readouterr().err
    assert message.startswith("vantage: error: ") and message.count("\n") == 1
    return message


def test_bad_input_is_refused_in_one_line(run, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert "episodes=0" in refuse(capsys, "eval", str(run), "--episodes", "0")
    assert "epsilon=2.0" in refuse(capsys, "eval", str(run), "--epsilon", "2")
    assert "seed=-1" in refuse(capsys, "watch", str(run), "--seed", "-1")
    assert "not a run directory" in refuse(capsys, "eval", str(tmp_path))
    assert ".mp4 or .gif" in refuse(capsys, "watch", str(run), "--out", "x.avi")
    assert "no display" in refuse(capsys, "watch", str(run))
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "x.mp4")
    assert "cannot write" in refuse(capsys, "watch", str(run), "--out", out)


def test_a_run_without_a_checkpoint_is_refused(tmp_path, capsys):
    RunDir(tmp_path / "run").create(dataclasses.replace(tiny_config(), seed=3))
    assert "holds no checkpoint yet" in refuse(capsys, "eval", str(tmp_path / "run"))


def test_a_report_or_comparison_of_nothing_is_refused(tmp_path, capsys):
    assert "no runs found" in refuse(capsys, "report", str(tmp_path))
    assert "config.json" in refuse(capsys, "compare", str(tmp_path))
