"""A Reverb server with the tables of a config, in a process of its own, that never holds back.

`python -m launch.profile.replay_process RUN_DIR PORT` serves until its standard input closes, so
that it cannot outlive who started it.
"""

import contextlib
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import portpicker
import psutil
import reverb

from launch.config import Config
from launch.invocation import program_command
from launch.nodes.tables import replay_tables
from launch.profile.timing import core_seconds
from launch.run_dir import RunDir
from reverb_server.rate_limit import RateLimit

_START_SECONDS = 60
_STOP_SECONDS = 20
_NO_LIMIT = 1e12  # samples by which the ratio may be off


class ReplayProcess(NamedTuple):
    """A running server."""

    address: str
    process: psutil.Process

    def core_seconds(self) -> float:
        """Core time it has used so far."""
        return core_seconds(self.process)

    def resident_bytes(self) -> int:
        """Memory it holds."""
        return self.process.memory_info().rss


@contextlib.contextmanager
def replay_process(config: Config) -> Iterator[ReplayProcess]:
    """Starts a server; ends it on the way out."""
    port = portpicker.pick_unused_port()
    with tempfile.TemporaryDirectory() as folder:
        RunDir(pathlib.Path(folder)).create(config)
        command = program_command("launch.profile.replay_process", folder, str(port))
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            address = f"localhost:{port}"
            reverb.Client(address).server_info(timeout=_START_SECONDS)
            yield ReplayProcess(address, psutil.Process(child.pid))
        finally:
            _end(child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    assert child.stdin is not None
    child.stdin.close()
    try:
        child.wait(timeout=_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def main(argv: list[str]) -> None:
    """Serves until standard input closes."""
    _, folder, port = argv
    config = RunDir(pathlib.Path(folder)).load_config()
    limit = RateLimit(config.replay.samples_per_insert, 1, _NO_LIMIT)
    server = reverb.Server(replay_tables(config, limit), port=int(port))
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main(sys.argv)
