"""Which view a terminal gets, and which a log."""

import os
import pty
from pathlib import Path

import pytest
from rich.console import Console

from launch.monitor.live_view import LiveView
from launch.monitor.plain_view import PlainView, format_line
from launch.monitor.view import make_view
from tests.launch.monitor.busy_run import busy_run


def test_a_terminal_gets_the_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    main, terminal = pty.openpty()
    with os.fdopen(main, "rb"), os.fdopen(terminal, "w") as file:
        assert isinstance(make_view(Console(file=file)), LiveView)
        monkeypatch.setenv("TERM", "dumb")
        assert isinstance(make_view(Console(file=file)), PlainView)


def test_a_file_gets_plain_lines_even_if_color_is_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with open(tmp_path / "log", "w") as file:
        view = make_view(Console(file=file))
        view.update(busy_run())
        view.close()
    assert (tmp_path / "log").read_text() == format_line(busy_run()) + "\n"
