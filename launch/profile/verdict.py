"""What holds a run back, in one line, with the one change that would help most."""

from typing import NamedTuple

from launch.profile.timed_run import TimedRun

_STARVED = 0.2  # share of the learner's time without a batch
_HELD_BACK = 0.05  # share of an actor's time the limiter must hold it for it to have time to spare
_BUSY_CORES = 0.9  # share of the machine's cores


class Limits(NamedTuple):
    """The machine, and what the parts cost on it alone."""

    cores: int
    bare_update_ms: float  # wall
    bare_update_core_ms: float
    bare_step_core_ms: float  # emulator and network, per agent step


def core_time_efficiency(run: TimedRun, limits: Limits) -> float:
    """Share of the machine's core time that went into bare updates and bare steps."""
    used_ms = (
        run.updates_per_second * limits.bare_update_core_ms
        + run.steps_per_second * limits.bare_step_core_ms
    )
    return used_ms / (1000.0 * limits.cores)


def device_verdict(run: TimedRun, *, cores: int, update_ms: float) -> str:
    """Whether this host feeds a device that takes `update_ms` for an update, and what holds it."""
    learner_waits = run.roles["learner"].wait_fraction or 0.0
    actors_wait = run.roles["actor"].wait_fraction or 0.0
    used = sum(role.cores for role in run.roles.values())
    facts = (
        f"the host sustains {run.updates_per_second:,.0f} of the {1000.0 / update_ms:,.0f} "
        f"updates/s of a device that takes {update_ms:g} ms for one; it waits {learner_waits:.0%} "
        f"for data, actors wait {actors_wait:.0%} on the rate limiter; "
        f"{used:.1f} of {cores} cores in use"
    )
    if learner_waits < _STARVED:
        return f"device-bound: {facts}; the host has what the device needs"
    if used >= _BUSY_CORES * cores:
        return f"core-bound: {facts}; more cores help most, or actors on hosts of their own"
    if actors_wait < _HELD_BACK:
        return f"actor-bound: {facts}; more actors (--actors), on more hosts, help most"
    return f"sampling-bound: {facts}; cores are left: more streams (--sample-streams) help most"


def verdict(run: TimedRun, limits: Limits) -> str:
    """Names the bottleneck and the way out."""
    learner_waits = run.roles["learner"].wait_fraction or 0.0
    actors_wait = run.roles["actor"].wait_fraction or 0.0
    used = sum(role.cores for role in run.roles.values())
    full = used >= _BUSY_CORES * limits.cores
    update_ms = 1000.0 / max(run.updates_per_second, 1e-9)
    facts = (
        f"an update every {update_ms:.0f} ms, {limits.bare_update_ms:.0f} ms of it bare; "
        f"the learner waits {learner_waits:.0%} for data, actors wait {actors_wait:.0%} "
        f"on the rate limiter; {used:.1f} of {limits.cores} cores in use"
    )
    if learner_waits < _STARVED:
        advice = (
            "a faster device, or a smaller network, helps most"
            if actors_wait >= _HELD_BACK
            else "actors just keep up: more of them would gain nothing yet"
        )
        if actors_wait >= 0.5:
            advice += "; fewer actors lose nothing"
        return f"learner-bound: {facts}; {advice}"
    if full:
        return f"core-bound: {facts}; more cores help most, or a smaller network"
    if actors_wait >= _HELD_BACK:
        return (
            f"replay-bound: {facts}; neither side is busy: widen --error-buffer, "
            "or look at the replay node's log"
        )
    return f"actor-bound: {facts}; more actors (--actors) or games (--envs-per-actor) help most"
