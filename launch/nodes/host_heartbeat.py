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

from launch.monitor.host_rows import role_of, rows_of
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
        status = read_json(status_file)
        playing = [n["index"] for n in status["nodes"] if _plays(n)]
        if playing and min(playing) == own_index:
            for row in rows_of(status):
                report(row)
    except (OSError, ValueError, KeyError, TypeError) as error:
        # The disk of the host is full, say: others see it fall silent, and it plays on.
        logging.warning("cannot tell of this host: %s", error)


def _plays(node: dict[str, Any]) -> bool:
    return node["role"] == "actor" and node["state"] == "running"
