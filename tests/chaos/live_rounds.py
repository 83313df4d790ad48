"""Faults to one live run, in random order and at random moments, and what must hold after each."""

import contextlib
import functools
import itertools
import pathlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.chaos.live_faults import LIVE_FAULTS, Fault
from tests.chaos.round import Round, judged
from tests.chaos.setting import FLAGS, N_STEP, RECOVERY_SECONDS, TARGET_RATIO
from tests.chaos.synthetic import SyntheticActor, check_replay
from tests.launch.live_run import LiveRun

_RATIO_TOLERANCE = 0.1
_SAMPLES = 200
_PEACE_SECONDS = (0.5, 4.0)
_KILLS_IN_A_ROW = 4
_WORK_SECONDS = 35.0  # after which a failure is the first of a new row
_EVALUATOR_RESTS = "waiting for parameters"


def live_rounds(
    folder: pathlib.Path, names: list[str], *, rounds: int, quick_rounds: int, seed: int
) -> Iterator[Round]:
    """So many rounds of each fault, all to one run."""
    rng = random.Random(seed)
    order: list[Fault] = []
    for name in dict.fromkeys(names):
        same = [fault for fault in LIVE_FAULTS if fault.name == name]
        number = quick_rounds if same[0].quick else rounds
        order += itertools.islice(itertools.cycle(rng.sample(same, len(same))), number)
    if not order:
        return
    rng.shuffle(order)
    with LiveRun(folder / "run", *FLAGS) as run:
        run.wait_started(RECOVERY_SECONDS)
        for fault in order:
            yield judged(fault.name, functools.partial(_one_round, run, fault, rng))


def _one_round(run: LiveRun, fault: Fault, rng: random.Random) -> Round:
    """A while of peace beside an actor of known episodes, then the fault."""
    if run.process.poll() is not None:  # the round before ended it
        run.resume()
        run.wait_started(RECOVERY_SECONDS)
    # One for each round: a resumed run may listen elsewhere.
    with contextlib.closing(SyntheticActor(run.address, n_step=N_STEP)):
        time.sleep(rng.uniform(*_PEACE_SECONDS))
        for name in fault.kills:
            _let_work(run, name)
        return _inject_and_check(run, fault, rng)


def _let_work(run: LiveRun, name: str) -> None:
    """Five failures in a row would end the run, and rightly; one that worked is not in the row."""
    if run.nodes()[name]["restarts"] % _KILLS_IN_A_ROW == _KILLS_IN_A_ROW - 1:
        run.wait(f"{name} works", lambda: _works(run, name), RECOVERY_SECONDS)
        time.sleep(_WORK_SECONDS)


def _works(run: LiveRun, name: str) -> bool:
    """Whether it counts what it does; one that starts, restores or compiles counts nothing."""
    said = run.nodes().get(name, {}).get("progress") or ""
    return said == _EVALUATOR_RESTS or any(letter.isdigit() for letter in said)


def _inject_and_check(run: LiveRun, fault: Fault, rng: random.Random) -> Round:
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
    """Actor 0 is no target of any fault, so it lives on.

    Its rows are taken by its own time: those that waited in the telemetry table when replay was
    checkpointed come again, later, when replay is restored.
    """
    rows = [row for row in run.rows("actor/0")[seen:] if "epsilon" in row]
    versions = [row["params_version"] for row in sorted(rows, key=lambda row: row["time"])]
    assert versions == sorted(versions), f"versions of an actor went back: {versions}"
