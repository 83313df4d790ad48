"""`make bench`: the figures that are held against a bar, as ratios within one run.

Nothing here is a test: a shared or noisy machine moves every number. The bars are printed beside
the figures, and missing one is said, not hidden.
"""

import dataclasses
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.publish_speed import publish_fraction
from benchmarks.update_speed import against_naive, make_bare_update, one_per_dispatch
from launch import build
from launch.config import PRESETS, Config
from launch.profile.actor_speed import measure_actor
from launch.profile.command import as_json, for_profiling
from launch.profile.recorded_play import increments, record_rows
from launch.profile.replay_process import replay_process
from launch.profile.stages import make_draw, measure_replay_bytes, writing
from launch.profile.timed_run import TimedRun, run_for
from launch.profile.timing import Cost, mean_cost
from launch.profile.verdict import Limits, core_time_efficiency
from launch.run_dir import describe

_OUT = pathlib.Path("out/bench.json")
_RUN_SECONDS = 40.0
_PAUSE_SECONDS = 3.0  # far less than the supervisor lets a node stand still
_ACTOR_ROUNDS = 100
_DRAW_SECONDS, _DRAW_ROUNDS = 0.5, 20
_FILL_STEPS = 5000


class Bar(NamedTuple):
    """A figure, and the bar it is held against."""

    name: str
    value: float
    bar: float
    at_most: bool

    @property
    def met(self) -> bool:
        """Whether the figure meets its bar."""
        return self.value <= self.bar if self.at_most else self.value >= self.bar


def paper_config(network: str) -> Config:
    """The paper's agent on two actors, with a replay that fits a laptop."""
    paper = PRESETS["paper"]
    return for_profiling(
        dataclasses.replace(
            paper,
            learner=dataclasses.replace(paper.learner, network=network),
            replay=dataclasses.replace(paper.replay, replay_capacity_steps=100_000),
        )
    )


def measure(console: Console) -> tuple[list[Bar], dict[str, Any]]:
    """Every figure with its bar, and the measurements behind them."""
    nature = paper_config("nature")
    with console.status("bare update against the naive one") as status:
        costs = against_naive(nature)
        status.update("actor alone")
        actor = measure_actor(nature, rounds=_ACTOR_ROUNDS)
        status.update("sampling path without a learner")
        batches = batches_per_second(nature)
        bytes_per_step = measure_replay_bytes(nature)
        status.update("publishing to 1 and to 64 actors")
        publish = {count: publish_fraction(nature, actors=count) for count in (1, 64)}
        runs, efficiency = {}, {}
        for network in ("nature", "nips2013"):
            status.update(f"the whole program, {network}")
            run, limits = measure_run(paper_config(network))
            efficiency[network] = core_time_efficiency(run, limits)
            runs[network] = {**as_json(run), "limits": limits._asdict()}
    bars = [
        Bar("bare_update_over_naive", costs["ours"].wall_ms / costs["naive"].wall_ms, 0.75, True),
        Bar("core_time_efficiency_nature", efficiency["nature"], 0.85, False),
        Bar("core_time_efficiency_nips2013", efficiency["nips2013"], 0.85, False),
        Bar("actor_overhead", actor.overhead, 0.10, True),
        Bar("publish_fraction_1_actor", publish[1], 0.01, True),
        Bar("publish_fraction_64_actors", publish[64], 0.01, True),
        Bar("batches_per_second", batches, 300.0, False),
        Bar("replay_bytes_per_step", bytes_per_step, 4096.0, True),
    ]
    details = {
        "update_ms": {name: cost._asdict() for name, cost in costs.items()},
        "actor_ms": {name: getattr(actor, name)._asdict() for name in actor._fields},
        "runs": runs,
    }
    return bars, details


def measure_run(config: Config) -> tuple[TimedRun, Limits]:
    """A whole run, and what its parts cost alone.

    The machine's speed moves within seconds, so the bare update is measured in pauses of the run.
    An actor's bare step is a small part of the sum; before and after is near enough.
    """
    update = make_bare_update(one_per_dispatch(config))
    in_pauses: list[Cost] = []
    before = measure_actor(config).bare.core_ms
    run = run_for(
        config,
        _RUN_SECONDS,
        in_pauses=lambda: in_pauses.append(mean_cost(update, seconds=_PAUSE_SECONDS)),
    )
    after = measure_actor(config).bare.core_ms
    bare = Cost(*map(statistics.mean, zip(*in_pauses, strict=True)))
    return run, Limits(os.cpu_count() or 1, *bare, statistics.mean((before, after)))


def batches_per_second(config: Config) -> float:
    """Batches of the config's size from a real server to the device, with nothing done to them."""
    with replay_process(config) as server:
        with writing(config, server.address) as write:
            play = increments(record_rows(config), config.learner.n_step)
            for _ in range(_FILL_STEPS):
                write(next(play))
        draw = make_draw(config, server.address)
        draw()
        best = 0.0
        for _ in range(_DRAW_ROUNDS):
            began, drawn = time.perf_counter(), 0
            while time.perf_counter() - began < _DRAW_SECONDS:
                draw()
                drawn += config.learner.updates_per_dispatch
            best = max(best, drawn / (time.perf_counter() - began))
    return best


def main(argv: list[str]) -> None:
    """Measures, prints, writes."""
    out = pathlib.Path(argv[0]) if argv else _OUT
    console = Console()
    build.own_backend().prepare_process()
    bars, details = measure(console)
    table = Table("figure", "measured", "bar", "")
    for bar in bars:
        sign = "<=" if bar.at_most else ">="
        met = "met" if bar.met else "missed"
        table.add_row(bar.name, f"{bar.value:,.4g}", f"{sign} {bar.bar:g}", met)
    console.print(table)
    figures = {bar.name: bar.value for bar in bars}
    apart = ("batches_per_second", "replay_bytes_per_step")
    found = {
        "ratios": {name: value for name, value in figures.items() if name not in apart},
        **{name: figures[name] for name in apart},
        **details,
        **describe(paper_config("nature")),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=2) + "\n")
    console.print(f"wrote {out}")


if __name__ == "__main__":
    main(sys.argv[1:])
