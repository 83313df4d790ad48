"""What `vantage profile` is asked for; apart, so that reading flags does not load JAX."""

import dataclasses
import pathlib

from launch.bounds import Bounds

UPDATE_MS = Bounds(above=0, at_most=60_000)  # of an update on a device


@dataclasses.dataclass(frozen=True)
class ProfileRequest:
    """What to measure, and where to put it."""

    seconds: float = 30.0
    """How long the whole program is watched once it learns."""
    json: pathlib.Path | None = None
    """Write everything measured here; the picture goes beside it as .png."""
    sweep_actors: str | None = None
    """Numbers of actors to compare, as 1,2,4,8; the stages are then left out."""
    simulate_update_ms: float | None = None
    """Replace the update by one that takes this long on a pretended device, and no core."""
    trace: pathlib.Path | None = None
    """Folder for a JAX trace of a few updates (open it in Perfetto)."""


@dataclasses.dataclass(frozen=True)
class PlanRequest:
    """Only with --plan: what to plan, and for which hosts."""

    plan: bool = False
    """Say what a run needs, from costs measured on this host, instead of profiling it."""
    updates_per_second: float | None = None
    """The rate to plan for; without it, what --actors reach on --hosts is predicted."""
    update_ms: float | None = None
    """What an update takes on the device; without it, this host's own is measured."""
    cores_per_host: int | None = None
    """Cores of each host; by default as many as this one has."""
    hosts: int | None = None
    """Hosts to predict for: 1, or one for the learner and the others for actors."""
    gbit_per_second: float = 10.0
    """What the network of a host carries."""
    runs: str = "1"
    """How many runs there will be, as 57x3x4: games, seeds, algorithms."""
