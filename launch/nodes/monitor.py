"""The monitor node: telemetry rows from Reverb to metrics.jsonl and TensorBoard."""

import contextlib
import logging
import pathlib
from typing import Any

import launchpad as lp
import reverb

from launch import heartbeat
from launch.config import Config
from launch.heartbeat import Phase
from launch.monitor.events import EventWriter
from launch.monitor.host_rows import HostFiles
from launch.monitor.loop import run_monitor
from launch.nodes.limits import most_steps
from launch.run_dir import RunDir
from report.counted import counted
from report.metrics_file import MetricsFile
from reverb_server import telemetry
from reverb_server.client import SERVER_AWAY


def run_monitor_node(config: Config, run_dir: pathlib.Path, client: reverb.Client) -> None:
    """Writes rows until the program stops; the launcher draws the picture from the file."""
    stop = lp.stop_event()
    heart = heartbeat.of_this_process("monitor")
    heart.beat(Phase.STARTING)
    drain = Drain(client, most_frames=config.frames_of(most_steps(config)))
    hosts = HostFiles(RunDir(run_dir))

    def num_foreign() -> int:
        return drain.num_dropped + hosts.num_dropped

    def drain_heard() -> list[dict[str, Any]]:
        if num_foreign():
            heart.remark(_foreign_text(num_foreign()))  # once a minute
        heart.beat(Phase.RECORDING, drain.num_rows)
        return _without_hosts(hosts, drain())

    metrics = MetricsFile(RunDir(run_dir).metrics_file)
    try:
        with contextlib.closing(EventWriter(run_dir)) as events:
            run_monitor(
                drain=drain_heard,
                should_stop=stop.wait,
                sinks={
                    str(metrics.path): metrics.append,
                    f"TensorBoard events in {events.path}": events.append,
                },
            )
    finally:
        if num_foreign():
            logging.warning("%s in all", _foreign_text(num_foreign()))


def _foreign_text(number: int) -> str:
    return f"dropped {counted(number, 'row')} of telemetry that cannot be this run's"


def _without_hosts(hosts: HostFiles, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    try:
        return hosts.take(rows)
    except OSError as error:
        # A full disk: the metrics say so for themselves, and hosts speak again soon.
        logging.warning("cannot write what hosts say: %s", error)
        return [row for row in rows if not str(row.get("role")).startswith("host/")]


class Drain:
    """Rows from the table; those that do not know the global frame count get the newest one.

    Rows of frames that the run can never reach are a stranger's, and dropped.
    """

    def __init__(self, client: reverb.Client, *, most_frames: int):
        self._reader = telemetry.TelemetryReader(client)
        self._most_frames = most_frames
        self._frames = 0
        self._num_beyond = 0
        self.num_rows = 0

    @property
    def num_dropped(self) -> int:
        """Rows that were none, or of frames beyond any of the run's."""
        return self._reader.junk_rows + self._num_beyond

    def __call__(self) -> list[dict[str, Any]]:
        """All that waits in the table."""
        try:
            rows = self._reader.drain()
        except SERVER_AWAY as error:
            # The server is away for a moment; its rows wait, or are gone with it.
            logging.warning("telemetry: %s", error)
            return []
        self.num_rows += len(rows)
        return [row for row in rows if self._dates(row)]

    def _dates(self, row: dict[str, Any]) -> bool:
        """Whether the run can have been where a row says; fills in what the row does not know."""
        frames = row.setdefault("frames", self._frames)
        if isinstance(frames, (int, float)) and frames > self._most_frames:
            if self._num_beyond == 0:
                logging.error("dropping rows beyond frame %d: not this run's", self._most_frames)
            self._num_beyond += 1
            return False
        if isinstance(frames, int):  # the monitor itself drops rows with anything else
            self._frames = max(self._frames, frames)
        return True
