"""`vantage report` of nothing."""


def test_a_report_of_nothing_is_refused(tmp_path, refuse):
    assert "no runs found" in refuse("report", str(tmp_path))
