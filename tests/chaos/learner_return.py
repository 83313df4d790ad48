"""How long a learner that was killed takes to train again, in parts.

    python -m tests.chaos.learner_return --rounds 5 --network nature

Flags beside --rounds are those of `vantage train`. The parts come from the learner's log, but
for the first: the supervisor's status says when the next process was started.
"""

import argparse
import datetime
import itertools
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

from tests.launch.live_run import LiveRun

# What the log says at the end of each part, in this order.
_PARTS = {
    "imports": "learner: starting",
    "network and checkpoint": "restored ",
    "first batch": "learner: compiling",
    "first update": "learner: update ",
}
_FLAGS = ("--frames=1000000000", "--checkpoint-seconds=10", "--report-seconds=1")
_SETTLE_SECONDS = 35.0  # so that the failures are not in a row


def one_return(run: LiveRun) -> dict[str, float]:
    """Kills the learner once; seconds by part."""
    log = run.run_dir.log_file("learner", 0)
    seen = log.stat().st_size
    former = run.nodes()["learner-0"]["pid"]
    killed = time.time()
    os.kill(former, signal.SIGKILL)

    run.wait("it is started again", lambda: run.nodes()["learner-0"]["pid"] not in (None, former))
    started = time.time()  # give or take a tenth
    moments = run.wait("it trains again", lambda: _moments(log, seen))
    ends = [killed, started, *moments]
    lasted = (after - before for before, after in itertools.pairwise(ends))
    parts = dict(zip(("noticed, back-off", *_PARTS), lasted, strict=True))
    return parts | {"all": ends[-1] - killed}


def _moments(log: pathlib.Path, seen: int) -> list[float] | None:
    """When the log said each line, beyond so many bytes; None while one is missing."""
    with log.open("rb") as file:
        file.seek(seen)
        lines = file.read().decode(errors="replace").splitlines()
    found = [next((line for line in lines if words in line), None) for words in _PARTS.values()]
    return None if None in found else [_time_of(line) for line in found if line is not None]


def _time_of(line: str) -> float:
    return datetime.datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()


def main() -> int:
    """Prints a table: medians and the worst."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    args, flags = parser.parse_known_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    rounds = []
    with (
        tempfile.TemporaryDirectory(prefix="return-", ignore_cleanup_errors=True) as folder,
        LiveRun(pathlib.Path(folder) / "run", *_FLAGS, *flags) as run,
    ):
        run.wait("a checkpoint", run.newest_checkpoint)
        for _ in range(args.rounds):
            rounds.append(one_return(run))
            print({name: round(seconds, 2) for name, seconds in rounds[-1].items()}, flush=True)
            time.sleep(_SETTLE_SECONDS)
    print("| part | median s | worst s |\n|---|---|---|")
    for name in rounds[0]:
        seconds = [one[name] for one in rounds]
        print(f"| {name} | {statistics.median(seconds):.1f} | {max(seconds):.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
