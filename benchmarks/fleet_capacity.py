"""How many actors one server can carry, from what it cost with a few sizes of the fleet."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.optimize

PUBLISH_SECONDS = 2.0  # as often as a learner with 50 updates a second and a period of 100
# Of one real actor process with a core of its own, from the profile.
_ACTOR_STEPS_PER_SECOND = 1000.0
# A learner on an accelerator, fed by two cores: what the bench finds for the sampling path.
LEARNER_UPDATES_PER_SECOND, _BATCH_SIZE = 300.0, 32


class Point(NamedTuple):
    """One size of the fleet, measured."""

    actors: int
    inserts_per_second: float
    samples_per_second: float
    server_cores: float
    pull_age_p99: float | None  # seconds since the newest parameters reached an actor


class ServerCosts(NamedTuple):
    """Core milliseconds of the server."""

    insert: float
    sample: float
    pull: float  # of one actor, whenever parameters are published

    def cores_for(self, actors: int, inserts_per_second: float, samples_per_insert: float) -> float:
        """Cores a server needs to carry a fleet."""
        pulls_per_second = actors / PUBLISH_SECONDS
        per_insert = self.insert + samples_per_insert * self.sample
        return (inserts_per_second * per_insert + pulls_per_second * self.pull) / 1000.0


def fit_costs(points: Sequence[Point]) -> ServerCosts:
    """The costs that explain the server's core time in all points best; none is negative."""
    operations = [
        (p.inserts_per_second, p.samples_per_second, p.actors / PUBLISH_SECONDS) for p in points
    ]
    costs, _ = scipy.optimize.nnls(np.array(operations), [p.server_cores for p in points])
    return ServerCosts(*(1000.0 * costs).tolist())


class Need(NamedTuple):
    """What a fleet of real actors would ask of a server."""

    actors: int
    cores_free: float  # every actor plays as fast as it can
    cores_held: float  # the limiter holds them to what one learner learns from


def extrapolate(costs: ServerCosts, actors: int, samples_per_insert: float) -> Need:
    """Cores for a fleet of any size."""
    free = actors * _ACTOR_STEPS_PER_SECOND
    held = LEARNER_UPDATES_PER_SECOND * _BATCH_SIZE / samples_per_insert
    return Need(
        actors,
        costs.cores_for(actors, free, samples_per_insert),
        costs.cores_for(actors, min(free, held), samples_per_insert),
    )
