"""An actor speaks for its host: what the supervisor says of its nodes goes out by telemetry.

Of the actors that run on a host the first one speaks. When it fails the next one does, so nobody
has to be chosen.
"""

import logging
import pathlib
import time
from collections.abc import Callable
from typing import Any

import reverb

from launch.monitor.host_rows import role_of
from launch.node_status import from_json, to_row
from report.json_file import read_json
from reverb_server.telemetry import TelemetryWriter

_PERIOD_SECONDS = 5.0


def tell_of_host(
    host: int, status_file: pathlib.Path, own_index: int, client: reverb.Client
) -> None:
    """Runs for as long as the process does."""
    report = TelemetryWriter(client, role_of(host))
    while True:
        send_status(status_file, own_index, report)
        time.sleep(_PERIOD_SECONDS)


def send_status(
    status_file: pathlib.Path, own_index: int, report: Callable[[dict[str, Any]], None]
) -> None:
    """Sends what the supervisor wrote last, if this actor is the one to speak."""
    try:
        said, nodes = from_json(read_json(status_file))
        playing = [n.index for n in nodes if n.role == "actor" and n.state == "running"]
        if playing and min(playing) == own_index:
            for node in nodes:
                report(to_row(said, node))
    except (OSError, ValueError) as error:
        # The disk of the host is full, say: others see it fall silent, and it plays on.
        logging.warning("cannot tell of this host: %s", error)
