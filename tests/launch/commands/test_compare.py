"""`vantage compare` of nothing, and of runs in a folder."""

from launch.cli import main as cli
from tests.report.synthetic_runs import write_run


def test_a_comparison_of_nothing_is_refused(tmp_path, refuse):
    assert "no config.json in it or below it" in refuse("compare", str(tmp_path))
    assert "needs runs, or folders of runs" in refuse("compare")


def test_no_file_is_written_unasked(tmp_path, monkeypatch, capsys):
    write_run(tmp_path / "runs" / "a")
    monkeypatch.chdir(tmp_path)
    assert cli.run(["compare", "runs"]) == 0
    assert "runs/a: va on pong" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert cli.run(["compare", "runs", "--out", "c.png"]) == 0
    assert (tmp_path / "c.png").is_file()
