"""`vantage tabular` with bad input."""

import pytest


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--seeds", "0"], "seeds=0 must be at least 1"),
        (["--epsilon", "1.5"], "epsilon=1.5 must be in [0, 1]"),
        (["--epsilons", "0.5", "-0.1"], "epsilons=-0.1 must be in [0, 1]"),
        (["--updates", "75"], "updates=75"),
        (["--max-updates", "50"], "updates=5000 must not exceed max_updates=50"),
        (["--gradient", "per-sample"], "per-sample"),
        (["--out", "file/out"], "out=file/out cannot be made"),
    ],
)
def test_a_bad_tabular_study_is_refused_in_one_line(refuse, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert said in refuse("tabular", *flags)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
