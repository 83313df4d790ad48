"""`vantage compare` of nothing."""


def test_a_comparison_of_nothing_is_refused(tmp_path, refuse):
    assert "config.json" in refuse("compare", str(tmp_path))
