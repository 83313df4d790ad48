"""A fleet of light synthetic actors against one real Reverb server: where does replay saturate?

    python -m benchmarks.fleet [--actors 1,4,16,64,256] [--seconds 5] [--out out/fleet.json]

Each actor inserts recorded frames as fast as the server takes them and follows the parameters, as a
real one does; there is no emulator and no network. One more process samples batches. What counts is
the server's own core time per operation: from it follows how many actors one server can carry. The
machine itself is full at every size, because all clients share it with the server.
"""

import functools
import json
import pathlib
import sys
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Event
from typing import Any, NamedTuple

import numpy as np
import reverb
import tyro
from rich.console import Console
from rich.table import Table

from benchmarks.background import CONTEXT, in_background
from benchmarks.fleet_capacity import (
    LEARNER_UPDATES_PER_SECOND,
    PUBLISH_SECONDS,
    Need,
    Point,
    ServerCosts,
    extrapolate,
    fit_costs,
)
from benchmarks.fleet_picture import draw_fleet
from launch import build
from launch.config import PRESETS, Config
from launch.engines.isolate import move_to_own_network
from launch.monitor.units import format_number
from launch.nodes.tables import item_layout
from launch.profile.recorded_play import increments, record_rows
from launch.profile.replay_process import ReplayProcess, replay_process
from launch.profile.stages import make_draw
from launch.run_dir import describe
from launch.terminal import say
from learner import acting
from report.counted import counted
from reverb_server.client import read_counts
from reverb_server.params import ParamsPublisher, ParamsPuller
from reverb_server.params_check import Counters, ParamsLimits
from reverb_server.writer import ExperienceWriter

_FILL_STEPS = 3000
_START_SECONDS = 400.0  # bounds a hang; a loaded machine starts processes slowly
_AGES_SECONDS = 200.0
_EXTRAPOLATED = (256, 1024)


def measure(config: Config, actors: int, seconds: float, *, sample: bool) -> Point:
    """Runs one fleet, and measures it for some seconds."""
    ages = CONTEXT.Queue()
    shares = [actors // 2, actors - actors // 2] if actors > 1 else [actors]
    with replay_process(config) as server:
        jobs = [functools.partial(_actors, config, server.address, n, ages) for n in shares]
        if sample:
            jobs.append(functools.partial(_sampler, config, server.address))
        with in_background(functools.partial(publish, config, server.address), *jobs) as stop:
            _wait_for_traffic(config, server.address, sample=sample)
            return _watch(config, server, actors, seconds, stop, ages, len(shares))


def _watch(
    config: Config,
    server: ReplayProcess,
    actors: int,
    seconds: float,
    stop: Event,
    ages: Any,
    shares: int,
) -> Point:
    client, layout = reverb.Client(server.address), item_layout(config)
    began, before, cores = time.monotonic(), read_counts(client, layout), server.core_seconds()
    time.sleep(seconds)
    after, used = read_counts(client, layout), server.core_seconds() - cores
    elapsed = time.monotonic() - began
    stop.set()
    seen = [age for _ in range(shares) for age in ages.get(timeout=_AGES_SECONDS)]
    return Point(
        actors=actors,
        inserts_per_second=(after.inserts - before.inserts) / elapsed,
        samples_per_second=(after.samples - before.samples) / elapsed,
        server_cores=used / elapsed,
        pull_age_p99=float(np.percentile(seen, 99)) if seen else None,
    )


def _wait_for_traffic(config: Config, address: str, *, sample: bool) -> None:
    client, layout = reverb.Client(address), item_layout(config)
    deadline = time.monotonic() + _START_SECONDS
    while True:
        table = read_counts(client, layout)
        if table.inserts > _FILL_STEPS and (table.samples > 0 or not sample):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{table.inserts} inserts after {_START_SECONDS:.0f} s")
        time.sleep(0.1)


def publish(config: Config, address: str, stop: Event) -> None:
    """Publishes new parameters at a steady rate, as a learner does."""
    values = np.zeros(acting.num_acting_values(build.network_of(config)), np.float32)
    publisher = ParamsPublisher(reverb.Client(address))
    version = 0
    while not stop.wait(PUBLISH_SECONDS):
        version += 1
        publisher.publish(lambda: values, version=version, steps=0, finished=False)
    publisher.close()


def _actors(config: Config, address: str, actors: int, ages: Any, stop: Event) -> None:
    """Some actors of the fleet, taking turns in one process."""
    rows = record_rows(config, 500)
    client = reverb.Client(address)
    num_values = acting.num_acting_values(build.network_of(config))
    pullers = [
        ParamsPuller(
            reverb.Client(address), limits=ParamsLimits(num_values, Counters(10**9, 10**9))
        )
        for _ in range(actors)
    ]
    # As actors do before they play. A large fleet may be stopped before its first round is over.
    first = [puller.wait_first(_START_SECONDS) for puller in pullers]
    seen = [newest.age_seconds for newest in first if newest is not None]
    with ExperienceWriter(
        client, item_layout(config), num_streams=actors, should_stop=stop.is_set
    ) as writer:
        plays = [increments(config, rows) for _ in range(actors)]
        while not stop.is_set():
            for stream, play in enumerate(plays):
                writer.write(stream, *next(play))
            newest = pullers[len(seen) % actors].get()
            if newest is not None:
                seen.append(newest.age_seconds)
    ages.put(seen[-10_000:])
    for puller in pullers:
        puller.close()


def _sampler(config: Config, address: str, stop: Event) -> None:
    # An empty table lets it wait for longer than a draw does.
    _wait_for_traffic(config, address, sample=False)
    draw = make_draw(config, address)
    while not stop.is_set():
        draw()


def main(argv: list[str]) -> None:
    """Measures, prints, writes."""
    flags = tyro.cli(_Flags, args=argv)
    config = PRESETS["cpu"]
    points = measure_all(config, [int(part) for part in flags.actors.split(",")], flags.seconds)
    costs = fit_costs(points)
    ratio = config.replay.samples_per_insert
    needs = [extrapolate(costs, actors, ratio) for actors in _EXTRAPOLATED]
    _print(points, costs, needs, ratio)
    flags.out.parent.mkdir(parents=True, exist_ok=True)
    found = {
        "points": [point._asdict() for point in points],
        "server_core_ms": costs._asdict(),
        "extrapolation": [need._asdict() for need in needs],
        **describe(config),
    }
    flags.out.write_text(json.dumps(found, indent=2) + "\n")
    image = flags.out.with_suffix(".png")
    curve = [extrapolate(costs, 2**power, ratio) for power in range(11)]
    draw_fleet(points, curve, image)
    say(f"wrote {flags.out} and {image}")


def measure_all(config: Config, sizes: Sequence[int], seconds: float) -> list[Point]:
    """Every size, while nobody samples and while somebody does; says what it is at."""
    points: list[Point] = []
    todo = [(actors, sample) for actors in sizes for sample in (False, True)]
    for number, (actors, sample) in enumerate(todo, start=1):
        what = f"{counted(actors, 'actor')}, {'sampled' if sample else 'nobody samples'}"
        say(f"{number} of {len(todo)}: {what}; starting it, then {seconds:g} s")
        point = measure(config, actors, seconds, sample=sample)
        say(f"  {point.inserts_per_second:,.0f} inserts/s, {point.server_cores:.2f} server cores")
        points.append(point)
    return points


def _print(
    points: Sequence[Point], costs: ServerCosts, needs: Sequence[Need], ratio: float
) -> None:
    console = Console()
    table = Table("actors", "inserts/s", "samples/s", "server cores", "pull age p99 (s)")
    for point in points:
        table.add_row(
            str(point.actors),
            f"{point.inserts_per_second:,.0f}",
            f"{point.samples_per_second:,.0f}",
            f"{point.server_cores:.2f}",
            format_number(point.pull_age_p99, ".1f"),
        )
    console.print(table)
    console.print(
        f"server core time: {costs.insert:.3f} ms per insert, {costs.sample:.3f} ms per sample, "
        f"{costs.pull:.2f} ms per actor and publication"
    )
    for need in needs:
        console.print(
            f"{need.actors} actors at ratio {ratio:g}: {need.cores_free:.1f} server cores at full "
            f"speed, {need.cores_held:.1f} with a learner of {LEARNER_UPDATES_PER_SECOND:.0f} "
            "updates/s"
        )


class _Flags(NamedTuple):
    """Measures how far one Reverb server scales."""

    actors: str = "1,4,16,64,256"
    """Sizes of the fleet."""
    seconds: float = 5.0
    """How long each is watched."""
    out: pathlib.Path = pathlib.Path("out/fleet.json")
    """Where the figures go."""


if __name__ == "__main__":
    move_to_own_network()
    main(sys.argv[1:])
