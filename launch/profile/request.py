"""What `vantage profile` is asked for; apart, so that reading flags does not load JAX."""

import dataclasses
import pathlib


@dataclasses.dataclass(frozen=True)
class ProfileRequest:
    """What to measure, and where to put it."""

    seconds: float = 30.0
    """How long the whole program is watched once it learns."""
    json: pathlib.Path | None = None
    """Write everything measured here; the picture goes beside it as .png."""
    sweep_actors: str | None = None
    """Numbers of actors to compare, as 1,2,4,8; the stages are then left out."""
    trace: pathlib.Path | None = None
    """Folder for a JAX trace of a few updates (open it in Perfetto)."""
