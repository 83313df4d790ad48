"""`vantage profile --plan`: measures what the parts cost here, and says what a run needs."""

import dataclasses
import json
import math
import pathlib

from rich.console import Console
from rich.table import Table

from launch import build
from launch.bounds import POSITIVE, Bounds
from launch.config import Config
from launch.errors import ExitCode, InputError
from launch.machine.device import DeviceName, find_device
from launch.machine.limits import usable_cores
from launch.profile import plan as plan_lib
from launch.profile.costs import measure_costs
from launch.profile.plan import Costs, Hosts, Plan
from launch.profile.request import UPDATE_MS, PlanRequest
from launch.run_dir import describe

_RATE = Bounds(above=0, at_most=1e6)
_HOSTS = Bounds(1, 10_000)
_CORES = Bounds(1, 4096)
_MIB, _GIB = 2**20, 2**30


def check(request: PlanRequest) -> int:
    """Refuses what cannot be planned; returns the number of runs."""
    if not request.plan:
        for field in dataclasses.fields(PlanRequest):
            if getattr(request, field.name) != field.default:
                raise InputError(f"--{field.name.replace('_', '-')} needs --plan")
        return 1
    _RATE.check(updates_per_second=request.updates_per_second)
    UPDATE_MS.check(update_ms=request.update_ms)
    _CORES.check(cores_per_host=request.cores_per_host)
    _HOSTS.check(hosts=request.hosts)
    POSITIVE.check(gbit_per_second=request.gbit_per_second)
    rate, update_ms = request.updates_per_second, request.update_ms
    if rate is not None and request.hosts is not None:
        raise InputError("--hosts is for a prediction; with --updates-per-second it is found")
    if rate is not None and update_ms is not None and rate * update_ms > 1000.0:
        # Known before a minute of measuring.
        raise InputError(
            f"updates_per_second={rate:g} cannot be reached: with update_ms={update_ms:g} the "
            f"device makes {1000.0 / update_ms:,.0f}"
        )
    return _number_of_runs(request.runs)


def _number_of_runs(text: str) -> int:
    factors = text.split("x")
    if not all(factor.isdecimal() and 1 <= int(factor) <= 10**6 for factor in factors):
        raise InputError(f"runs='{text}' must be whole numbers from 1, as 684 or 57x3x4")
    return math.prod(map(int, factors))


def make_plan(
    config: Config,
    measured: Config,
    request: PlanRequest,
    out: pathlib.Path | None,
    console: Console,
) -> ExitCode:
    """Plans `config`; `measured` is the same run, fit for measuring its parts."""
    runs = check(request)
    if request.update_ms is not None:
        # Nothing is measured on the device then, so it need not be here.
        measured = with_device(measured, "cpu")
    find_device(measured.learner.device)
    build.prepare_learner_process(measured)
    with console.status("measuring") as status:
        costs = measure_costs(
            measured, lambda name: status.update(f"cost of: {name}"), update_ms=request.update_ms
        )
    hosts = Hosts(
        hosts=request.hosts or 1,
        cores_per_host=request.cores_per_host or usable_cores(),
        gbit_per_second=request.gbit_per_second,
    )
    if request.updates_per_second is None:
        plan = plan_lib.predict(config, costs, hosts, runs=runs)
    else:
        plan = plan_lib.plan_for(
            config, costs, hosts, updates_per_second=request.updates_per_second, runs=runs
        )
    _print(console, plan, costs)
    console.print(plan_lib.sentence(plan), soft_wrap=True)
    if out is not None:
        found = {**plan_lib.as_json(plan, costs), **describe(config)}
        out.write_text(json.dumps(found, indent=2) + "\n")
        console.print(f"wrote {out}")
    return ExitCode.DONE


def with_device(config: Config, device: DeviceName) -> Config:
    """The same run on another device."""
    return dataclasses.replace(config, learner=dataclasses.replace(config.learner, device=device))


def _print(console: Console, plan: Plan, costs: Costs) -> None:
    _print_parts(console, plan, costs)
    _print_whole(console, plan, costs)


def _print_parts(console: Console, plan: Plan, costs: Costs) -> None:
    table = Table("part", "cores", "cost here", title="What the parts of a run need")
    table.add_row(
        f"{plan.actors:,} actors", f"{plan.actor_cores:.1f}", f"{costs.step.core_ms:.3f} ms a step"
    )
    table.add_row(
        "sampling", f"{plan.sampling_cores:.1f}", f"{costs.sample.core_ms:.2f} ms a batch"
    )
    table.add_row(
        "replay",
        f"{plan.replay_cores:.1f}",
        f"{costs.sample_server_core_ms:.2f} ms a batch, {costs.insert_server_core_ms:.3f} a step, "
        f"{costs.pull_server_core_ms:.2f} a pull",
    )
    table.add_row(
        "update", f"{plan.update_cores:.1f}", f"{costs.update.wall_ms:.2f} ms on the device"
    )
    console.print(table)


def _print_whole(console: Console, plan: Plan, costs: Costs) -> None:
    table = Table("what", "how much", title="What a run needs", show_header=False)
    for name, value in (
        ("hosts", f"{plan.hosts:,} of {plan.cores_per_host} cores"),
        (
            "memory of the learner's host",
            f"{plan.learner_host_bytes / _GIB:.1f} GiB "
            f"({costs.replay_bytes_per_step:,.0f} bytes for a step in replay)",
        ),
        ("memory for the actors of a host", f"{plan.actor_host_bytes / _GIB:.1f} GiB"),
        ("network between hosts", f"{plan.network_bytes_per_second / _MIB:,.1f} MiB/s"),
        (
            "from replay to the learner",
            f"{plan.replay_to_learner_bytes_per_second / _MIB:,.1f} MiB/s",
        ),
        (
            "rates",
            f"{plan.updates_per_second:,.0f} updates/s, {plan.frames_per_second:,.0f} frames/s",
        ),
        ("hours of a run", f"{plan.run_hours:,.1f}"),
        ("hours of all runs, one by one", f"{plan.all_runs_hours:,.1f} ({plan.runs:,} runs)"),
        (
            "saturates first",
            f"{plan.saturates_first}, at {plan.saturates_at_updates_per_second:,.0f} updates/s",
        ),
    ):
        table.add_row(name, value)
    console.print(table)
