"""`vantage profile`: what is my bottleneck?"""

import dataclasses
import json
import os
import pathlib
import tempfile
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from launch import build, config_checks
from launch.config import Config
from launch.errors import ExitCode, InputError
from launch.machine.device import find_device
from launch.machine.limits import usable_cores
from launch.monitor.units import format_number, format_percent
from launch.profile import picture, plan_command
from launch.profile.actor_speed import measure_actor
from launch.profile.own_process import in_own_process
from launch.profile.rehearsal import Pretence
from launch.profile.request import UPDATE_MS, PlanRequest, ProfileRequest
from launch.profile.resident_batches import resident_batches
from launch.profile.stages import Stages, measure_stages
from launch.profile.timed_run import RunFailedError, TimedRun, run_for
from launch.profile.verdict import Limits, core_time_efficiency, device_verdict, verdict
from launch.run_dir import describe
from launch.terminal import make_console

_TRACED_CALLS = 10
_WARM_UP_STEPS = 1000


def profile(config: Config, request: ProfileRequest, plan: PlanRequest) -> ExitCode:
    """Measures, prints, writes."""
    asked, config = config, for_profiling(config)
    config_checks.check_config(config)
    counts = _check(request)
    plan_command.check(plan)
    _check_together(request, plan)
    console = make_console()
    if plan.plan:
        config_checks.check_config(asked)
        return plan_command.make_plan(asked, config, plan, request.json, console)
    find_device(config.learner.device)
    try:
        if counts:
            return _sweep(config, request, counts, console)
        if request.simulate_update_ms is not None:
            return _rehearse(config, request, request.simulate_update_ms, console)
        return _profile(config, request, console)
    except RunFailedError as error:
        raise InputError(f"{error}; try `vantage train` with the same flags to see why") from None


def for_profiling(config: Config) -> Config:
    """The same run with a short warm-up, frequent rows, and no end before we say so."""
    warmup = max(min(config.replay.warmup_steps, _WARM_UP_STEPS), config.sampled_transitions)
    return dataclasses.replace(
        config,
        replay=dataclasses.replace(config.replay, warmup_steps=warmup),
        # An evaluation in between would be measured as a slow spell of the rest.
        evaluator=dataclasses.replace(config.evaluator, eval_period_frames=10**12, eval_episodes=1),
        report_seconds=1.0,
        frames=10**10,
    )


def _check(request: ProfileRequest) -> list[int]:
    if not request.seconds >= 3:
        raise InputError(f"seconds={request.seconds:g} must be at least 3: rows come every second")
    if request.simulate_update_ms is not None:
        UPDATE_MS.check(simulate_update_ms=request.simulate_update_ms)
        if request.trace is not None:
            raise InputError("--trace needs real updates; drop --simulate-update-ms")
    for path in (request.json, request.trace):
        if path is not None:
            _check_writable(path)
    if request.sweep_actors is None:
        return []
    try:
        counts = [int(part) for part in request.sweep_actors.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise InputError(
            f"sweep_actors='{request.sweep_actors}' must be numbers of actors, as 1,2,4,8"
        )
    return counts


def _check_together(request: ProfileRequest, plan: PlanRequest) -> None:
    """Refuses flags of which one would go unheard."""
    if request.sweep_actors is not None and request.trace is not None:
        raise InputError("--trace is of a single run; drop --sweep-actors")
    if not plan.plan:
        return
    for field in dataclasses.fields(ProfileRequest):
        if field.name != "json" and getattr(request, field.name) != field.default:
            flag = f"--{field.name.replace('_', '-')}"
            raise InputError(f"--plan measures parts and runs nothing whole; drop {flag}")


def _check_writable(path: pathlib.Path) -> None:
    """Found out now, not after minutes of measuring."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.is_dir() and path.suffix == ".json":
            raise IsADirectoryError(21, "Is a directory")
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror}") from None


def _profile(config: Config, request: ProfileRequest, console: Console) -> ExitCode:
    with console.status("stages alone") as status:
        stages = in_own_process(measure_stages, config)
        status.update("stage alone: actor")
        actor = measure_actor(config)
        limits = Limits(os.cpu_count() or 1, *stages.bare_update, actor.bare.core_ms)
        if request.trace is not None:
            in_own_process(trace_updates, config, request.trace)
        status.update(f"the whole program, {request.seconds:.0f} s once it learns")
        run = run_for(config, request.seconds)
    said = verdict(run, limits)
    _print_stages(console, stages)
    _print_roles(console, run)
    efficiency = core_time_efficiency(run, limits)
    _print_rates(console, run, f"core-time efficiency {efficiency:.2f}")
    console.print(said, soft_wrap=True)
    if request.json is not None:
        found = {
            "verdict": said,
            "stages": [stage._asdict() for stage in stages.stages],
            "replay_bytes_per_step": stages.replay_bytes_per_step,
            "actor_overhead": actor.overhead,
            "limits": limits._asdict(),
            "core_time_efficiency": efficiency,
            "run": as_json(run),
            **describe(config),
        }
        _write(request.json, found)
        image = request.json.with_suffix(".png")
        picture.draw_profile(stages.stages, run, limits.cores, said, image)
        console.print(f"wrote {request.json} and {image}")
    return ExitCode.DONE


def _rehearse(
    config: Config, request: ProfileRequest, update_ms: float, console: Console
) -> ExitCode:
    with console.status(f"the whole program, {request.seconds:.0f} s, on a pretended device"):
        run = run_for(config, request.seconds, pretence=Pretence(update_ms))
    said = device_verdict(run, cores=usable_cores(), update_ms=update_ms)
    _print_roles(console, run)
    _print_rates(console, run)
    console.print(said, soft_wrap=True)
    if request.json is not None:
        found = {"verdict": said, "simulated_update_ms": update_ms, "run": as_json(run)}
        _write(request.json, {**found, **describe(config)})
        console.print(f"wrote {request.json}")
    return ExitCode.DONE


def _sweep(
    config: Config, request: ProfileRequest, counts: list[int], console: Console
) -> ExitCode:
    points = []
    simulated = request.simulate_update_ms
    pretence = None if simulated is None else Pretence(simulated)
    table = Table("actors", "frames/s", "updates/s", "learner waits", "actors wait", "cores used")
    for count in counts:
        with console.status(f"{count} actors, {request.seconds:.0f} s once they learn"):
            with_count = dataclasses.replace(
                config, actor=dataclasses.replace(config.actor, actors=count)
            )
            run = run_for(with_count, request.seconds, pretence=pretence)
        points.append((count, run))
        table.add_row(
            str(count),
            f"{run.frames_per_second:,.0f}",
            f"{run.updates_per_second:.1f}",
            format_percent(run.roles["learner"].wait_fraction),
            format_percent(run.roles["actor"].wait_fraction),
            f"{sum(role.cores for role in run.roles.values()):.2f}",
        )
    console.print(table)
    if request.json is not None:
        runs = [{"actors": count, **as_json(run)} for count, run in points]
        _write(request.json, {"sweep": runs, **describe(config)})
        image = request.json.with_suffix(".png")
        picture.draw_sweep(points, image)
        console.print(f"wrote {request.json} and {image}")
    return ExitCode.DONE


def trace_updates(config: Config, folder: pathlib.Path) -> None:
    """Writes what the profiler of JAX sees of some updates."""
    build.prepare_learner_process(config)
    state, update = build.make_learner(config)
    batches = resident_batches(config)
    state, _ = jax.block_until_ready(update(state, *batches[0]))
    with jax.profiler.trace(str(folder), create_perfetto_trace=True):
        for i in range(_TRACED_CALLS):
            state, _ = update(state, *batches[i % len(batches)])
        jax.block_until_ready(state)


def _print_stages(console: Console, stages: Stages) -> None:
    table = Table("stage alone", "per", "ms", "bare ms", "the limit", title="Stages")
    for stage in stages.stages:
        table.add_row(
            stage.name, stage.per, f"{stage.wall_ms:.3f}", f"{stage.bare_ms:.3f}", stage.bare
        )
    console.print(table)
    console.print(f"replay memory: {stages.replay_bytes_per_step:,.0f} bytes per agent step")


def _print_roles(console: Console, run: TimedRun) -> None:
    table = Table("role", "nodes", "cores", "waits", title=f"Whole program, {run.seconds:.0f} s")
    for name, role in run.roles.items():
        table.add_row(
            name, str(role.nodes), f"{role.cores:.2f}", format_percent(role.wait_fraction)
        )
    console.print(table)


def _print_rates(console: Console, run: TimedRun, *more: str) -> None:
    rates = (
        f"{run.frames_per_second:,.0f} frames/s, {run.updates_per_second:.1f} updates/s, "
        f"samples/insert {format_number(run.samples_per_insert, '.2f')}, "
        f"batches ready {format_number(run.batches_ready, '.1f')}, parameter age "
        f"p50 {run.params_age_p50 or 0:.1f} s p99 {run.params_age_p99 or 0:.1f} s"
    )
    stolen = f"({run.stolen_cores:.2f} cores went to other guests of this host)"
    console.print(", ".join([rates, *more]), stolen, soft_wrap=True)


def as_json(run: TimedRun) -> dict[str, Any]:
    """A run as plain dictionaries."""
    return {
        **run._asdict(),
        "roles": {name: role._asdict() for name, role in run.roles.items()},
    }


def _write(path: pathlib.Path, found: dict[str, Any]) -> None:
    path.write_text(json.dumps(found, indent=2) + "\n")
