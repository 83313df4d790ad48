"""The replay node: Launchpad's ReverbNode, serving our tables from the run directory."""

import logging
import pathlib
import resource
from typing import Any

import launchpad as lp
import reverb

from launch import heartbeat
from launch.config import Config
from launch.heartbeat import Phase
from launch.monitor.units import format_bytes
from launch.nodes.tables import item_layout, replay_tables
from launch.replay import replay_limit
from launch.run_dir import RunDir
from reverb_server import server, telemetry


class ReplayNode(lp.ReverbNode):
    """A ReverbNode that checkpoints durably, also when it stops, and reports its size."""

    def __init__(self, config: Config, run_dir: pathlib.Path):
        super().__init__(priority_tables_fn=lambda: replay_tables(config, replay_limit(config)))
        self._config = config
        self._run_dir = RunDir(run_dir)

    def run(self) -> None:
        """Serves until the program stops."""
        address = self._address.resolve()
        stop = lp.stop_event()
        heart = heartbeat.of_this_process("replay")
        heart.beat(Phase.STARTING)
        # Every connection is an open file, and strangers may hold some.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        writer: list[telemetry.TelemetryWriter] = []

        def report(row: dict[str, Any]) -> None:
            # Made on first use: the server it writes to runs in this very process.
            if not writer:
                writer.append(telemetry.TelemetryWriter(reverb.Client(address), "replay"))
            heart.remark(f"{row.get('size', 0):,} steps held, {format_bytes(row['bytes'])}")
            if "checkpoint_seconds" in row:
                size = format_bytes(row["checkpoint_bytes"])
                logging.info("checkpoint: %s in %.1f s", size, row["checkpoint_seconds"])
            writer[0](row)

        tables = self._priority_tables_fn()
        heart.beat(Phase.RESTORING)
        server.serve(
            tables,
            item_layout(self._config),
            port=lp.address.get_port_from_address(address),
            checkpoint_directory=self._run_dir.replay,
            checkpoint_seconds=self._config.replay.replay_checkpoint_seconds,
            report_seconds=self._config.report_seconds,
            report=report,
            wait_for_stop=stop.wait,
            on_answer=lambda inserts: heart.beat(Phase.SERVING, inserts),
            on_save=lambda: heart.beat(Phase.SAVING),
        )
