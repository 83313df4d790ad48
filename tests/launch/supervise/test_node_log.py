"""What goes into a node's log, and what does not."""

import pathlib
import subprocess
import sys

import pytest

from launch import heartbeat
from launch.heartbeat import Heartbeat, Phase

NOISY = """
import logging
from launch.supervise.node_log import set_up_log
set_up_log()
logging.getLogger("jax._src.xla_bridge").info("Unable to initialize backend 'tpu'")
logging.getLogger("jax._src.xla_bridge").warning("no GPU found")
exec(compile("import logging; logging.info('Returning a port')", "portpicker.py", "exec"))
logging.info("actor: step 1")
"""


def test_libraries_say_nothing_that_is_no_use():
    done = subprocess.run(
        [sys.executable, "-c", NOISY],
        cwd=pathlib.Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    said = [line.split(" ", 3)[2:] for line in done.stderr.splitlines()]
    assert said == [["WARNING", "no GPU found"], ["INFO", "actor: step 1"]]


@pytest.fixture
def said(caplog):
    caplog.set_level("INFO")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_loop_says_what_it_does_once_a_minute_with_what_it_remarked(said):
    now = [0.0]
    heart = Heartbeat("actor", None, clock=lambda: now[0])
    heart.beat(Phase.STARTING)
    for now[0] in range(1, 182):
        heart.remark(f"{now[0]} frames/s")
        heart.beat(Phase.PLAYING, 10 * now[0])
    assert said() == [
        "actor: starting",
        "actor: step 10; 1 frames/s",
        "actor: step 610; 61 frames/s",
        "actor: step 1,210; 121 frames/s",
        "actor: step 1,810; 181 frames/s",
    ]


def test_a_loop_whose_lines_would_tell_nothing_new_has_none_but_its_phases(said, monkeypatch):
    monkeypatch.delenv(heartbeat.VARIABLE, raising=False)
    now = [0.0]
    heart = Heartbeat("publisher", None, clock=lambda: now[0], log_seconds=float("inf"))
    for now[0] in range(0, 1000, 10):
        heart.beat(Phase.PUBLISHING, now[0])
    assert said() == ["publisher: publishing version 0"]
