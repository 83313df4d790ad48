"""`vantage watch`: an agent's play as a video or in a window, with what it thinks beside it."""
