"""`make chaos`: faults at random moments under a real run, many rounds, one table.

    python -m tests.chaos.chaos --rounds 5 --seed 1 --only kill

After each fault the run has to go on by itself (or, where the supervisor itself was killed, when it
is started with --resume): actors insert and the learner samples, every node is up, the realized
ratio returns to its target, counters have gone back by no more than a checkpoint, no actor has seen
an older version of the parameters, and no item in replay is torn.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from reverb_server.checkpoint import is_whole
from tests.chaos import faults
from tests.chaos.synthetic import SyntheticActor, check_replay
from tests.launch.live_run import N_STEP, TARGET_RATIO, LiveRun, NotRecoveredError

RECOVERY_SECONDS = 180.0
_RATIO_TOLERANCE = 0.1
_SAMPLES = 200
_DISK_BYTES = "256m"  # replay checkpoints alone take some 40
_FULL_SECONDS = 12.0
_FULL_DISK = f"disk full for {_FULL_SECONDS:.0f} s or more"


class Round(NamedTuple):
    """How one fault went."""

    fault: str
    seconds: float | None  # to recover; None if it did not
    lost: int  # transitions that were in replay before and were not afterwards
    checked: int  # synthetic items found whole
    problem: str = ""


def live_rounds(folder: pathlib.Path, names: list[str], rounds: int, seed: int) -> Iterator[Round]:
    """Faults in random order and at random moments, all to one run."""
    rng = random.Random(seed)
    chosen = [fault for fault in faults.LIVE_FAULTS if fault.name in names]
    order = [fault for _ in range(rounds) for fault in rng.sample(chosen, len(chosen))]
    if not order:
        return
    with LiveRun(folder / "run") as run:
        run.wait_started(RECOVERY_SECONDS)
        for fault in order:
            yield _judged(fault.name, functools.partial(one_round, run, fault, rng))


def _judged(fault: str, attempt: Callable[[], Round]) -> Round:
    """The round, or why it did not come to its end."""
    try:
        return attempt()
    except (NotRecoveredError, AssertionError) as error:
        return Round(fault, None, 0, 0, str(error).partition("\n")[0])


def one_round(run: LiveRun, fault: faults.Fault, rng: random.Random) -> Round:
    """A while of peace beside an actor of known episodes, then the fault."""
    if run.process.poll() is not None:  # the round before ended it
        run.resume()
        run.wait_started(RECOVERY_SECONDS)
    # One for each round: a resumed run may listen elsewhere.
    with contextlib.closing(SyntheticActor(run.address, n_step=N_STEP)):
        time.sleep(rng.uniform(1.0, 6.0))
        return _inject_and_check(run, fault, rng)


def _inject_and_check(run: LiveRun, fault: faults.Fault, rng: random.Random) -> Round:
    """Injects one fault, waits for recovery, checks what must hold afterwards."""
    checkpoint = run.newest_checkpoint()
    seen = len(run.rows("actor/0"))
    before = run.wait("the server answers", run.counts, RECOVERY_SECONDS)
    started, injected_at = time.monotonic(), time.time()
    fault.inject(run, rng)
    run.wait("all nodes run", run.all_running, RECOVERY_SECONDS)
    after = run.wait_progress(RECOVERY_SECONDS)
    new_rows = _rows_after(run, injected_at)
    run.wait("metrics are written", new_rows, RECOVERY_SECONDS)
    seconds = time.monotonic() - started
    if "checkpoint" in fault.name:
        checkpoint = 0  # the newest one is the one that was damaged
    run.wait("the ratio is back", lambda: _ratio_is_back(new_rows()), RECOVERY_SECONDS)
    _check_counters(new_rows(), checkpoint)
    if not fault.ends_all:
        _check_versions(run, seen)
    checked = check_replay(run.address, _SAMPLES)
    return Round(fault.name, seconds, max(before.size - after.size, 0), checked)


def _rows_after(run: LiveRun, when: float) -> Callable[[], list[dict[str, Any]]]:
    """The learner's rows made after a moment; others that arrive after it may be older."""
    return lambda: [row for row in run.rows("learner") if row["time"] > when]


def _ratio_is_back(rows: list[dict[str, Any]]) -> bool:
    ratio = rows[-1].get("samples_per_insert")
    return ratio is not None and abs(ratio - TARGET_RATIO) <= _RATIO_TOLERANCE * TARGET_RATIO


def _check_counters(rows: list[dict[str, Any]], checkpoint: int) -> None:
    least = min(row["updates"] for row in rows)
    assert least >= checkpoint, f"updates went back to {least}, before checkpoint {checkpoint}"


def _check_versions(run: LiveRun, seen: int) -> None:
    """Actor 0 is no target of any fault, so it lives on."""
    versions = [row["params_version"] for row in run.rows("actor/0")[seen:] if "epsilon" in row]
    assert versions == sorted(versions), f"versions of an actor went back: {versions}"


def full_disk_round(folder: pathlib.Path) -> Round:
    """Metrics, logs and checkpoints on a file system that is full for a while."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES},mode=700", "tmpfs", str(folder)],
        check=True,
    )
    with LiveRun(folder / "run") as run:
        run.wait_started(RECOVERY_SECONDS)
        run.wait("replay checkpoint", lambda: _whole_replay(run), RECOVERY_SECONDS)
        run.wait("metrics", lambda: run.rows("learner"), RECOVERY_SECONDS)
        ballast = faults.fill_disk(folder)
        time.sleep(_FULL_SECONDS)
        run.wait_progress(RECOVERY_SECONDS)
        seen, full_until, started = len(run.rows("learner")), time.time(), time.monotonic()
        ballast.unlink()
        run.wait("metrics again", lambda: len(run.rows("learner")) > seen, RECOVERY_SECONDS)
        run.wait("checkpoints again", lambda: _saved_since(run, full_until), RECOVERY_SECONDS)
        run.wait("all nodes run", run.all_running, RECOVERY_SECONDS)
        assert run.restarts() == 0, f"{run.restarts()} restarts"
        return Round(_FULL_DISK, time.monotonic() - started, 0, 0)


def _whole_replay(run: LiveRun) -> list[pathlib.Path]:
    return [folder for folder in run.run_dir.replay.glob("*") if is_whole(folder)]


def _saved_since(run: LiveRun, when: float) -> bool:
    learner = [p.stat().st_mtime for p in run.run_dir.checkpoints.glob("checkpoint-*.npz")]
    replay = [folder.stat().st_mtime for folder in _whole_replay(run)]
    return max(learner, default=0) > when and max(replay, default=0) > when


def clock_round(name: str, folder: pathlib.Path, jump_seconds: float) -> Round:
    """The wall clock as all our processes see it jumps; the machine's own is left alone.

    It is Python's clock that jumps. The clocks of gRPC and Reverb cannot be moved without moving
    the machine's.
    """
    offset = folder / "offset"
    offset.write_text("0")
    (folder / "sitecustomize.py").write_text(_JUMPING_CLOCK.format(str(offset)))
    with LiveRun(folder / "run", environment={"PYTHONPATH": str(folder)}) as run:
        run.wait_started(RECOVERY_SECONDS)
        run.wait("metrics", lambda: run.rows("learner"), RECOVERY_SECONDS)
        seen, started = len(run.rows("learner")), time.monotonic()
        checkpoint = run.newest_checkpoint()
        offset.write_text(str(jump_seconds))
        run.wait("metrics go on", lambda: len(run.rows("learner")) > seen + 4, RECOVERY_SECONDS)
        run.wait("saves go on", lambda: run.newest_checkpoint() > checkpoint, RECOVERY_SECONDS)
        run.wait_progress(RECOVERY_SECONDS)
        seconds = time.monotonic() - started
        jumped = run.rows("learner")[-1]["time"] - time.time()
        assert abs(jumped - jump_seconds) < 3600, f"the clock was not seen to jump ({jumped})"
        assert run.restarts() == 0, f"{run.restarts()} restarts"
        return Round(name, seconds, 0, 0)


_JUMPING_CLOCK = """
import time
_now, _file = time.time, {!r}
def _jumping():
    try:
        return _now() + float(open(_file).read() or 0)
    except (OSError, ValueError):
        return _now()
time.time = _jumping
"""


def in_own_mounts(folder: pathlib.Path) -> Round:
    """Runs the round with the full disk where its file system is nobody else's."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    command += [sys.executable, "-m", "tests.chaos.chaos"]
    done = subprocess.run(
        [*command, "--disk-in", str(folder)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        return Round(_FULL_DISK, None, 0, 0, f"it ended with code {done.returncode}")
    return Round(*json.loads(done.stdout.splitlines()[-1]))


def all_rounds(args: argparse.Namespace, folder: pathlib.Path) -> Iterator[Round]:
    """Every fault whose name contains what was asked for."""
    wanted = [fault.name for fault in faults.LIVE_FAULTS if args.only in fault.name]
    (folder / "live").mkdir()
    yield from live_rounds(folder / "live", wanted, args.rounds, args.seed)
    if args.only in "disk full":
        for number in range(args.slow_rounds):
            (folder / f"disk-{number}").mkdir()
            yield in_own_mounts(folder / f"disk-{number}")
    if args.only in "clock jumps":
        for number in range(args.slow_rounds):
            for hours in (25, -25):
                name, place = f"clock jumps by {hours:+d} h", folder / f"clock-{number}-{hours}"
                place.mkdir()
                yield _judged(name, functools.partial(clock_round, name, place, 3600.0 * hours))


def table(rounds: list[Round]) -> str:
    """One line per fault, in Markdown."""
    lines = [
        "| fault | rounds | recovered | median s | worst s | transitions lost (worst) |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(one.fault for one in rounds):
        these = [one for one in rounds if one.fault == name]
        seconds = [one.seconds for one in these if one.seconds is not None]
        middle = f"{statistics.median(seconds):.1f}" if seconds else "-"
        worst = f"{max(seconds):.1f}" if seconds else "-"
        lost = max(one.lost for one in these)
        lines.append(f"| {name} | {len(these)} | {len(seconds)} | {middle} | {worst} | {lost} |")
    return "\n".join(lines)


def main() -> int:
    """Runs the rounds and prints the table; 1 if anything did not recover."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="of each fault to a live run")
    parser.add_argument("--slow-rounds", type=int, default=2, help="of full disk and clock jumps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose name contains this")
    parser.add_argument("--disk-in", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if args.disk_in is not None:
        attempt = functools.partial(full_disk_round, args.disk_in)
        print(json.dumps(_judged(_FULL_DISK, attempt)))
        return 0
    done: list[Round] = []
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as folder:
        for one in all_rounds(args, pathlib.Path(folder)):
            state = f"{one.seconds:.1f} s" if one.seconds is not None else f"NOT: {one.problem}"
            print(f"{one.fault}: {state}, {one.lost} lost, {one.checked} items whole", flush=True)
            done.append(one)
    print(table(done))
    print(f"{sum(one.checked for one in done)} synthetic items sampled, all whole")
    return 0 if done and all(one.seconds is not None for one in done) else 1


if __name__ == "__main__":
    sys.exit(main())
