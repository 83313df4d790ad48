"""The grid on a terminal, and the suite as lines of a log."""

import io

from rich.console import Console

from launch.suite.view import Cell, SuiteState, SuiteView, format_state, render


def state(*cells: Cell) -> SuiteState:
    return SuiteState(cells, elapsed_seconds=60.0, eta_seconds=3600.0)


def test_the_grid_shows_every_state_and_shrinks_to_what_goes_on():
    console = Console(file=io.StringIO(), width=80, height=24)
    cells = [Cell(f"game{i}", "va", "waiting", 0.0) for i in range(40)]
    cells[30] = Cell("game30", "va", "running", 0.43)
    cells[31] = Cell("game31", "va", "failed", 0.1)
    console.print(render(state(*cells), max_lines=12))
    text = console.file.getvalue()
    assert "0 of 40 runs done, 1 running, 1 failed, 1.3% of all frames" in text
    assert "43%" in text and "✗" in text and "and 35 more games" in text
    assert "game30" in text and "game0" in text


def test_a_log_gets_one_line_a_minute():
    console = Console(file=io.StringIO(), width=200)
    view = SuiteView(console)
    one = state(Cell("pong", "va", "done", 1.0), Cell("pong", "q", "running", 0.5))
    for seconds in (0.0, 30.0, 61.0):
        view.update(one._replace(elapsed_seconds=seconds))
    lines = console.file.getvalue().splitlines()
    assert lines == [format_state(one)] * 2
    assert lines[0] == "1 of 2 runs done, 1 running, 75.0% of all frames, ETA 1h 00m"
