"""What a host says of itself in its status file, for `vantage status`."""

import json
import os
import pathlib
import time
from collections.abc import Sequence
from typing import Any

from launch.host_name import this_host
from launch.run_dir import write_atomically


def write_host_status(
    path: pathlib.Path,
    state: str,
    *,
    started: float,
    nodes: Sequence[dict[str, Any]] = (),
    problem: str | None = None,
) -> None:
    """Replaces what this process said before; `problem` is why the host could not join."""
    status = {
        "state": state,
        "host": this_host(),
        "pid": os.getpid(),
        "started": started,
        "updated": time.time(),
        "nodes": list(nodes),
        "problem": problem,
    }
    write_atomically(path, json.dumps(status, indent=1))
