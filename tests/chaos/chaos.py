"""`make chaos`: faults at random moments under real runs, many rounds, one table.

    python -m tests.chaos.chaos --quick-rounds 5 --seed 1 --only kill

After each fault the run has to go on by itself (or, where the supervisor itself was killed, when it
is started with --resume): actors insert and the learner samples, every node is up, the realized
ratio returns to its target, counters have gone back by no more than a checkpoint, no actor has seen
an older version of the parameters, and no item in replay is torn. Only a run whose loss diverges
has to end.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator

from tests.chaos.live_faults import LIVE_FAULTS
from tests.chaos.live_rounds import live_rounds
from tests.chaos.own_runs import rounds_of_own_runs
from tests.chaos.round import Round


def all_rounds(args: argparse.Namespace, folder: pathlib.Path) -> Iterator[Round]:
    """Every fault whose name contains what was asked for."""
    (folder / "live").mkdir()
    yield from live_rounds(
        folder / "live",
        [fault.name for fault in LIVE_FAULTS if args.only in fault.name],
        rounds=args.rounds,
        quick_rounds=args.quick_rounds,
        seed=args.seed,
    )
    (folder / "own").mkdir()
    yield from rounds_of_own_runs(
        folder / "own", args.only, slow_rounds=args.slow_rounds, quick_rounds=args.quick_rounds
    )


def table(rounds: list[Round]) -> str:
    """One line per fault, in Markdown."""
    lines = [
        "| fault | rounds | recovered | median s | worst s | transitions lost (worst) |",
        "|---|---|---|---|---|---|",
    ]
    live = [fault.name for fault in LIVE_FAULTS]
    names = dict.fromkeys([*live, *(one.fault for one in rounds)])
    for name in names:
        these = [one for one in rounds if one.fault == name]
        if not these:
            continue
        seconds = [one.seconds for one in these if one.seconds is not None]
        middle = f"{statistics.median(seconds):.1f}" if seconds else "-"
        worst = f"{max(seconds):.1f}" if seconds else "-"
        lost = max(one.lost for one in these)
        lines.append(f"| {name} | {len(these)} | {len(seconds)} | {middle} | {worst} | {lost} |")
    return "\n".join(lines)


def main() -> int:
    """Runs the rounds and prints the table; 1 if anything did not recover."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick-rounds", type=int, default=20, help="of faults that take seconds")
    parser.add_argument("--rounds", type=int, default=3, help="of those that take longer")
    parser.add_argument("--slow-rounds", type=int, default=2, help="of those in runs of their own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose name contains this")
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    done: list[Round] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder:
        for one in all_rounds(args, pathlib.Path(folder)):
            state = f"{one.seconds:.1f} s" if one.seconds is not None else f"NOT: {one.problem}"
            print(f"{one.fault}: {state}, {one.lost} lost, {one.checked} items whole", flush=True)
            done.append(one)
    print(table(done))
    minutes = (time.monotonic() - started) / 60.0
    print(f"{sum(one.checked for one in done)} synthetic items, all whole; {minutes:.0f} minutes")
    return 0 if done and all(one.seconds is not None for one in done) else 1


if __name__ == "__main__":
    sys.exit(main())
