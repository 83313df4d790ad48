"""`make soak`: a run left alone for a while; memory, threads and open files of every role.

    python -m tests.chaos.soak --minutes 30

What is compared is the second quarter of the time with the last one: by then replay is full and
everything is compiled. Growth beyond a few per cent fails.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time
from typing import NamedTuple

import psutil
import reverb

from reverb_server import tables
from tests.chaos.setting import FLAGS
from tests.launch.live_run import LiveRun

_PERIOD_SECONDS = 5.0
_START_SECONDS = 180.0
# What may come and go: allocators keep some, and a thread pool fills up slowly.
_MEMORY_GROWTH, _MEMORY_BYTES = 0.02, 8 << 20
_COUNT_GROWTH = 3


class Usage(NamedTuple):
    """What a process holds."""

    memory_bytes: int
    threads: int
    files: int


def usages(run: LiveRun) -> dict[str, Usage]:
    """By node, and of the supervisor."""
    pids = {name: node["pid"] for name, node in run.nodes().items()}
    found = {}
    for name, pid in {"supervisor": run.process.pid, **pids}.items():
        process = psutil.Process(pid)
        with process.oneshot():
            found[name] = Usage(process.memory_info().rss, process.num_threads(), process.num_fds())
    return found


def telemetry_rows(run: LiveRun) -> int | None:
    """Rows nobody has read yet; None while the server does not answer, as when it checkpoints."""
    try:
        info = reverb.Client(run.address).server_info(timeout=5)
    except reverb.ReverbError:
        return None
    return info[tables.TELEMETRY].current_size


def is_flat(before: Usage, after: Usage) -> bool:
    """Whether nothing has grown."""
    allowed = max(before.memory_bytes * _MEMORY_GROWTH, _MEMORY_BYTES)
    return (
        after.memory_bytes - before.memory_bytes <= allowed
        and after.threads - before.threads <= _COUNT_GROWTH
        and after.files - before.files <= _COUNT_GROWTH
    )


def middle(samples: list[Usage]) -> Usage:
    """The median of each."""
    return Usage(*(int(statistics.median(values)) for values in zip(*samples, strict=True)))


def soak(run: LiveRun, minutes: float) -> int:
    """Watches the run; prints the table; returns how many lines of it are not flat."""
    history: list[dict[str, Usage]] = []
    pending: list[int | None] = []
    end = time.monotonic() + 60.0 * minutes
    while time.monotonic() < end:
        time.sleep(_PERIOD_SECONDS)
        history.append(usages(run))
        pending.append(telemetry_rows(run))
    quarter = max(len(history) // 4, 1)
    early, late = history[quarter : 2 * quarter], history[-quarter:]
    print("| role | memory MiB, 2nd quarter -> last | threads | open files | flat |")
    print("|---|---|---|---|---|")
    failures = 0
    for name in history[0]:
        before, after = middle([h[name] for h in early]), middle([h[name] for h in late])
        flat = is_flat(before, after)
        failures += not flat
        print(
            f"| {name} | {before.memory_bytes / 2**20:.0f} -> {after.memory_bytes / 2**20:.0f} "
            f"| {before.threads} -> {after.threads} | {before.files} -> {after.files} "
            f"| {'yes' if flat else 'NO'} |"
        )
    restarts = run.restarts()
    updates = run.rows("learner")[-1]["updates"]
    print(
        f"{minutes:g} minutes, {updates} updates, {restarts} restarts, "
        f"unread telemetry rows: {most(pending[quarter : 2 * quarter])} -> "
        f"{most(pending[-quarter:])} at most, {pending.count(None)} times without an answer"
    )
    return failures + restarts


def most(counts: list[int | None]) -> int:
    """The largest of those that were told."""
    return max((count for count in counts if count is not None), default=0)


def main() -> int:
    """Runs it; 1 if anything grew or died."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with (
        tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder,
        LiveRun(pathlib.Path(folder) / "run", *FLAGS) as run,
    ):
        run.wait_started(_START_SECONDS)
        return 1 if soak(run, args.minutes) else 0


if __name__ == "__main__":
    sys.exit(main())
