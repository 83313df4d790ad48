"""Learning curves of a few runs, in the terminal and as PNG."""

import pytest

from tests.report.synthetic_runs import REFERENCES, write_run

pytest.importorskip("plotext", reason="plotext is in the full environment only")

from report.comparison import NothingToCompareError, compare_runs


def compare(*paths, out, warn=print, color=False):
    return compare_runs(paths, out, references=REFERENCES, warn=warn, columns=80, color=color)


def test_runs_of_one_game_are_compared_by_return(tmp_path):
    a = write_run(tmp_path / "a", returns=(-20.0, 0.0, 18.0))
    b = write_run(tmp_path / "b", algorithm="q", returns=(-21.0, -20.0, -19.0))
    text = compare(a, b, out=tmp_path / "new" / "c.png")
    assert "return on pong" in text and "\x1b" not in text
    assert "last evaluation 18.0, best 18.0" in text
    assert all(len(line) <= 80 for line in text.splitlines()[:22])
    assert (tmp_path / "new" / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "\x1b" in compare(a, b, out=tmp_path / "c.png", color=True)


def test_the_better_run_is_the_upper_one_even_where_a_run_does_not_move(tmp_path):
    a = write_run(tmp_path / "better", returns=(-2.0, -2.0))
    b = write_run(tmp_path / "worse", returns=(-3.0, -3.0))
    lines = compare(a, b, out=tmp_path / "c.png").splitlines()
    chart = [line for line in lines if "┤" in line or "│" in line]
    rows = {mark: next(i for i, line in enumerate(chart) if mark * 9 in line) for mark in "*o"}
    assert rows["*"] < rows["o"]


def test_of_curves_that_coincide_each_is_seen_in_the_terminal(tmp_path):
    same = (-20.0, -10.0, -12.0, 5.0)
    runs = [write_run(tmp_path / name, seed=seed, returns=same) for seed, name in enumerate("abc")]
    text = compare(*runs, out=None)
    chart = [line.split("┤")[-1].split("│")[-2:] for line in text.splitlines() if "┤" in line]
    drawn = "".join(part[6:] for parts in chart for part in parts)  # without the legend
    assert all(drawn.count(mark) >= 5 for mark in "*o+"), text
    in_color = compare(*runs, out=None, color=True)
    assert all(in_color.count(f"\x1b[38;5;{code}m") >= 10 for code in (1, 4, 2))


def test_runs_of_different_games_are_compared_by_normalized_score(tmp_path):
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", game="breakout")
    assert "human-normalized score" in compare(a, b, out=tmp_path / "c.png")


def test_a_game_without_reference_scores_is_not_mixed_with_another(tmp_path):
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", game="chess")
    with pytest.raises(NothingToCompareError, match=r"b/config\.json: game 'chess' has no random"):
        compare(a, b, out=tmp_path / "c.png")
    assert not (tmp_path / "c.png").exists()


def test_a_run_without_evaluations_is_named_and_left_out(tmp_path):
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", returns=(), total_frames=9)
    said: list[str] = []
    assert "b/metrics.jsonl" not in compare(a, b, out=tmp_path / "c.png", warn=said.append)
    assert any("b/metrics.jsonl: no evaluation yet" in line for line in said)


def test_what_is_no_run_is_refused_by_name(tmp_path):
    with pytest.raises(NothingToCompareError, match=r"nothing' holds no run: no config\.json"):
        compare(tmp_path / "nothing", out=None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(NothingToCompareError, match=r"config\.json: has no 'config'"):
        compare(tmp_path, out=None)


def test_a_folder_stands_for_the_runs_in_it_and_each_is_drawn_once(tmp_path):
    a, _ = write_run(tmp_path / "suite" / "a"), write_run(tmp_path / "suite" / "b", algorithm="q")
    (tmp_path / "suite" / "damaged").mkdir()
    (tmp_path / "suite" / "damaged" / "config.json").write_text("{}")
    said: list[str] = []
    text = compare(tmp_path / "suite", a, out=None, warn=said.append)
    assert [line.count("/suite/a: ") for line in text.splitlines()].count(1) == 1
    assert "/suite/b: q on pong" in text
    assert ["damaged" in line for line in said] == [True]
    assert [path.name for path in tmp_path.iterdir()] == ["suite"]
