"""`vantage watch`: a checkpoint, shown."""

import imageio.v2 as imageio
import numpy as np
import pytest

from launch.cli import main as cli


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


def test_bad_input_is_refused_in_one_line(scored_run, tmp_path, refuse, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert "seed=-1" in refuse("watch", str(scored_run), "--seed", "-1")
    assert ".mp4 or .gif" in refuse("watch", str(scored_run), "--out", "x.avi")
    assert "no display" in refuse("watch", str(scored_run))
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "x.mp4")
    assert "cannot write" in refuse("watch", str(scored_run), "--out", out)
