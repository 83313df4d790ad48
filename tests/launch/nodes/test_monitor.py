"""The monitor node, and what a stranger's rows cannot do to it."""

import contextlib
import functools
import logging
import math
import pathlib

import pytest
import reverb

from launch import heartbeat
from launch.monitor.events import EventWriter
from launch.monitor.loop import run_monitor
from launch.monitor.snapshot import RunState
from launch.nodes.monitor import Drain, run_monitor_node
from launch.nodes.replay import replay_tables
from launch.replay import replay_limit
from report.metrics_file import MetricsFile, read_rows
from reverb_server import tables
from reverb_server.telemetry import TelemetryWriter
from tests.launch.monitor.event_files import read_events
from tests.launch.tiny_run import tiny_config

MOST_FRAMES = 10_000
HUGE = (1.7e308, 10**400, 2**63, 10**18, MOST_FRAMES + 1, float("inf"), float("nan"))


@pytest.fixture
def client():
    config = tiny_config()
    server = reverb.Server(replay_tables(config, replay_limit(config)))
    yield reverb.Client(f"localhost:{server.port}")
    server.stop()


def recorded(client: reverb.Client, folder: pathlib.Path, strangers: list[dict]) -> list[dict]:
    """What the monitor writes of a learner's row, rows of strangers, and one of replay."""
    stranger = TelemetryWriter(client, "learner")
    learner, replay = TelemetryWriter(client, "learner"), TelemetryWriter(client, "replay")
    learner({"frames": 400, "loss": 0.5})
    learner.close()
    for row in strangers:
        stranger(row)
    stranger.close()
    replay({"size": 7})
    replay.close()
    assert client.server_info(timeout=5)[tables.TELEMETRY].current_size == 2 + len(strangers)
    metrics = MetricsFile(folder / "metrics.jsonl")
    drain = Drain(client, most_frames=MOST_FRAMES)
    with contextlib.closing(EventWriter(folder)) as events:
        sinks = {"metrics": metrics.append, "events": events.append}
        run_monitor(drain=drain, should_stop=lambda _: True, sinks=sinks)
    assert read_events(folder)["replay/size"][-1][1] == 7.0
    return list(read_rows(metrics.path))


def test_rows_without_frames_get_the_newest_count(client, tmp_path):
    rows = recorded(client, tmp_path, [{"frames": 800, "loss": 0.25}])
    assert [row["frames"] for row in rows] == [400, 800, 800]


@pytest.mark.parametrize("frames", HUGE)
def test_frames_that_the_run_cannot_reach_are_dropped_and_spoil_no_other_row(
    client, tmp_path, frames
):
    rows = recorded(client, tmp_path, [{"frames": frames, "loss": 1.0}])
    assert [row["frames"] for row in rows] == [400, 400]


@pytest.mark.parametrize("number", [1.7e308, 10**400, -(10**400), 2**63])
def test_numbers_of_any_size_can_be_recorded_read_and_shown(client, tmp_path, number):
    strange = {"frames": 500, "updates": number, "updates_per_second": number, "loss": number}
    rows = recorded(client, tmp_path, [strange, {"frames": 500, "eval_return": number}])
    state = RunState(total_frames=MOST_FRAMES, target_samples_per_insert=8.0)
    state.add(rows)
    assert state.snapshot().frames <= MOST_FRAMES


ANYTHING = (1.5, -3, True, None, "text", 10**400, -(10**400), 2**63, 1.7e308, math.nan, math.inf)


@pytest.mark.parametrize("key", ["loss", "frames", "time", "role", "\ud800", "nul\0", "two\nlines"])
def test_a_row_may_hold_anything_and_costs_no_other_row(client, tmp_path, key):
    values = [*ANYTHING, "\ud800", "\x1b[2J", [1], {"a": [[]]}]
    rows = recorded(client, tmp_path, [{"frames": 500, key: value} for value in values])
    assert (rows[0]["loss"], rows[-1]["size"]) == (0.5, 7)
    for row in rows:
        assert all(text.isprintable() for text in [*row, *row.values()] if isinstance(text, str))
        assert type(row["frames"]) is int and row["frames"] <= MOST_FRAMES


def test_what_is_dropped_is_counted_in_the_log_now_and_then_and_at_the_end(
    client, local_run, monkeypatch, caplog
):
    """Rows that are none, rows beyond the run, and hosts that a local run does not have."""
    talkative = functools.partial(heartbeat.of_this_process, log_seconds=0.0)
    monkeypatch.setattr(heartbeat, "of_this_process", talkative)
    stranger = TelemetryWriter(client, "learner")
    for row in ({"a": []}, {"frames": 10**9}, {"frames": 10**9}, {"role": "host/0"}):
        stranger(row)
    stranger.close()
    stop = StopAfter(passes=2)
    monkeypatch.setattr("launch.nodes.monitor.lp.stop_event", lambda: stop)
    with caplog.at_level(logging.INFO):
        run_monitor_node(tiny_config(), local_run.root, client)
    counted = [text for text in caplog.messages if "dropped 4 rows" in text]
    assert counted[0].startswith("monitor: row ") and counted[-1].endswith("in all")
    assert not local_run.metrics_file.exists()


class StopAfter:
    """A stop that comes after some passes, without waiting for any."""

    def __init__(self, passes: int):
        self._passes = passes

    def wait(self, seconds: float) -> bool:
        self._passes -= 1
        return self._passes < 0
