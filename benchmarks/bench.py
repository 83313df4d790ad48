"""`make bench`: the figures that are held against a bar, as ratios within one run.

Nothing here is a test: a shared or noisy machine moves every number. The bars are printed beside
the figures, and missing one is said, not hidden.
"""

import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.device_curve import DevicePoint, measure_curve
from benchmarks.gate_speed import GateSpeed, measure_gate
from benchmarks.naive_system import naive_system
from benchmarks.paper_agent import paper_config
from benchmarks.publish_speed import publish_fraction
from benchmarks.sampling_speed import SamplingCosts, measure_sampling
from benchmarks.update_speed import against_naive
from benchmarks.whole_runs import WholeRun, measure_run
from launch import build
from launch.config import Config
from launch.engines.isolate import move_to_own_network
from launch.profile.actor_speed import ActorSpeed, measure_actor
from launch.profile.recorded_play import increments, record_rows
from launch.profile.replay_process import replay_process
from launch.profile.stages import make_draw, measure_replay_bytes, writing
from launch.profile.timing import Cost
from launch.run_dir import describe

_OUT = pathlib.Path("out/bench.json")
_ACTOR_ROUNDS = 100
_DRAW_SECONDS, _DRAW_ROUNDS = 0.5, 20
_FILL_STEPS = 5000


class Bar(NamedTuple):
    """A figure, and the bar it is held against."""

    name: str
    value: float
    bar: float | None = None  # None: for information
    at_most: bool = True

    def as_row(self) -> tuple[str, str, str, str]:
        """The figure, the bar, and whether it is met."""
        if self.bar is None:
            return self.name, f"{self.value:,.4g}", "", ""
        met = self.value <= self.bar if self.at_most else self.value >= self.bar
        sign = "<=" if self.at_most else ">="
        said = "met" if met else "missed"
        return self.name, f"{self.value:,.4g}", f"{sign} {self.bar:g}", said


class Measured(NamedTuple):
    """All that the figures are made of."""

    update: dict[str, Cost]  # ours and the naive one
    actor: ActorSpeed
    sampling: SamplingCosts
    batches_per_second: float
    replay_bytes_per_step: float
    publish_fraction: dict[int, float]  # by the number of actors
    runs: dict[str, WholeRun]  # by network
    curve: list[DevicePoint]
    gate: list[GateSpeed]  # with 1 client and with 64


def measure(report: Callable[[str], None]) -> Measured:
    """Measures everything, one after the other."""
    nature, nips2013 = paper_config("nature"), paper_config("nips2013")
    report("bare update against the naive one")
    update = against_naive(nature)
    report("actor alone")
    actor = measure_actor(nature, rounds=_ACTOR_ROUNDS)
    report("sampling path without a learner")
    batches, bytes_per_step = batches_per_second(nature), measure_replay_bytes(nature)
    sampling = measure_sampling(nature)
    report("publishing to 1 and to 64 actors")
    publish = {count: publish_fraction(nature, actors=count) for count in (1, 64)}
    report("the whole program, nature, with the naive system in its pauses")
    with naive_system(nature) as naive:
        runs = {"nature": measure_run(nature, naive)}
    report("the whole program, nips2013")
    runs["nips2013"] = measure_run(nips2013)
    report("the whole program on a pretended device")
    curve = measure_curve(nature)
    report("the gate, with 1 and with 64 clients")
    gate = [measure_gate(nature, clients=clients) for clients in (1, 64)]
    return Measured(update, actor, sampling, batches, bytes_per_step, publish, runs, curve, gate)


def bars_of(found: Measured) -> list[Bar]:
    """Every figure with its bar."""
    update, sampling, publish = found.update, found.sampling, found.publish_fraction
    nature, nips2013 = found.runs["nature"], found.runs["nips2013"]
    return [
        Bar("bare_update_over_naive", update["ours"].wall_ms / update["naive"].wall_ms, 0.75, True),
        Bar("run_over_naive_nature", nature.over_naive, 1.3, False),
        Bar("run_over_naive_nips2013", nips2013.over_naive, 1.3, False),
        Bar("over_naive_system", nature.over_naive_system, 6.0, False),
        Bar("sample_over_copy", sampling.sample_over_copy, 9.0, True),
        Bar("sample_serial_share", sampling.sample_serial_share, 0.15, True),
        Bar("sample_scaling_1_to_2_cores", sampling.sample_scaling_1_to_2_cores, 1.8, False),
        Bar("plan_error", max(nature.plan_error, nips2013.plan_error), 0.20, True),
        Bar("actor_overhead", found.actor.overhead, 0.10, True),
        Bar("publish_fraction_1_actor", publish[1], 0.01, True),
        Bar("publish_fraction_64_actors", publish[64], 0.01, True),
        Bar("gate_actor_throughput", min(gate.actor_throughput for gate in found.gate), 0.9, False),
        Bar("gate_over_server", max(gate.gate_over_server for gate in found.gate), 1.0, True),
        Bar("batches_per_second", found.batches_per_second, 300.0, False),
        Bar("replay_bytes_per_step", found.replay_bytes_per_step, 4096.0, True),
        Bar("core_time_efficiency_nature", nature.efficiency),
        Bar("core_time_efficiency_nips2013", nips2013.efficiency),
    ]


def as_json(found: Measured, bars: list[Bar]) -> dict[str, Any]:
    """What is written: the ratios, the two figures that are none, and all behind them."""
    apart = ("batches_per_second", "replay_bytes_per_step")
    figures = {bar.name: bar.value for bar in bars}
    return {
        "ratios": {name: value for name, value in figures.items() if name not in apart},
        **{name: figures[name] for name in apart},
        "update_ms": {name: cost._asdict() for name, cost in found.update.items()},
        "actor_ms": {name: cost._asdict() for name, cost in found.actor._asdict().items()},
        "sampling": found.sampling._asdict(),
        "runs": {name: run.as_json() for name, run in found.runs.items()},
        "simulated_device": [point._asdict() for point in found.curve],
        "gate": [gate._asdict() for gate in found.gate],
    }


def batches_per_second(config: Config) -> float:
    """Batches of the config's size from a real server to the device, with nothing done to them."""
    with replay_process(config) as server:
        with writing(config, server.address) as write:
            play = increments(config, record_rows(config))
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


def _bars_table(bars: list[Bar]) -> Table:
    table = Table("figure", "measured", "bar", "")
    for bar in bars:
        table.add_row(*bar.as_row())
    return table


def _curve_table(points: list[DevicePoint]) -> Table:
    table = Table("cores", "simulated update (ms)", "updates/s", "waits for data", "cores used")
    for point in points:
        table.add_row(
            str(point.cores),
            f"{point.update_ms:g}",
            f"{point.updates_per_second:,.0f}",
            f"{point.data_wait_fraction or 0.0:.0%}",
            f"{point.cores_used:.2f}",
        )
    return table


def main(argv: list[str]) -> None:
    """Measures, prints, writes."""
    out = pathlib.Path(argv[0]) if argv else _OUT
    console = Console()
    build.prepare_learner_process(paper_config("nature"))
    with console.status("measuring") as status:
        found = measure(status.update)
    bars = bars_of(found)
    console.print(_bars_table(bars))
    console.print(_curve_table(found.curve))
    out.parent.mkdir(parents=True, exist_ok=True)
    written = {**as_json(found, bars), **describe(paper_config("nature"))}
    out.write_text(json.dumps(written, indent=2) + "\n")
    console.print(f"wrote {out}")


if __name__ == "__main__":
    move_to_own_network()
    main(sys.argv[1:])
