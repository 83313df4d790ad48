"""Costs of calls, compared in one run: candidates take turns, and the best round of each counts.

A machine's speed moves by tens of percent within seconds; short turns keep a comparison fair, and
the best of many rounds is the one least disturbed. What is held against a whole run is a mean
instead, because a run has its slow seconds too. Core time is what all threads of this process used
together, so that two threads for 10 ms cost 20.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import psutil

ROUNDS = 5


class Cost(NamedTuple):
    """The cost of one call."""

    wall_ms: float
    core_ms: float

    def over(self, parts: int) -> "Cost":
        """The cost of one part of a call that does several."""
        return Cost(self.wall_ms / parts, self.core_ms / parts)


def compare(
    candidates: Mapping[str, Callable[[], object]], *, calls: int, rounds: int = ROUNDS
) -> dict[str, Cost]:
    """Best cost of each; a candidate must not return before its work is done."""
    for call in candidates.values():
        call()
    best: dict[str, Cost] = {}
    for _ in range(rounds):
        for name, call in candidates.items():
            found = _one_round(call, calls)
            before = best.get(name, found)
            best[name] = Cost(*map(min, before, found))
    return best


def mean_cost(call: Callable[[], object], *, seconds: float) -> Cost:
    """The mean cost of a call, over a time."""
    call()
    rounds = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        rounds.append(_one_round(call, 1))
    return Cost(*map(statistics.mean, zip(*rounds, strict=True)))


def core_seconds(process: psutil.Process) -> float:
    """Core time a process has used so far."""
    times = process.cpu_times()
    return times.user + times.system


def _one_round(call: Callable[[], object], calls: int) -> Cost:
    core, wall = time.process_time(), time.perf_counter()
    for _ in range(calls):
        call()
    wall, core = time.perf_counter() - wall, time.process_time() - core
    return Cost(1e3 * wall / calls, 1e3 * core / calls)
