"""`vantage tune`: the paper's search for a learning rate, as suites of runs."""
