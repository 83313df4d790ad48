"""Exploration: how epsilon is set, and epsilon-greedy choice for a batch of games."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Epsilon = float | np.ndarray  # one for all games of an actor, or one per game [E]
EpsilonFn = Callable[[int], Epsilon]  # of the global frame count
_LADDER_BASE, _LADDER_POWER = 0.4, 7.0


@dataclasses.dataclass(frozen=True)
class LinearEpsilon:
    """1 until `start_frames`, falls to `final` over the next `decay_frames` frames, then stays."""

    final: float
    decay_frames: int
    start_frames: int = 0

    def __call__(self, frames: int) -> float:
        """Epsilon at a global frame count."""
        since = frames - self.start_frames
        if since < 0:
            return 1.0
        done = min(since / self.decay_frames, 1.0) if self.decay_frames > 0 else 1.0
        return 1.0 + (self.final - 1.0) * done


def ladder_epsilon(rung: int, num_rungs: int) -> float:
    """Ape-X: a fixed epsilon per rung i of N, 0.4 ** (1 + 7 i / (N - 1))."""
    if num_rungs == 1:
        return _LADDER_BASE
    return float(_LADDER_BASE ** (1.0 + _LADDER_POWER * rung / (num_rungs - 1)))


@dataclasses.dataclass(frozen=True)
class LadderEpsilon:
    """Ape-X's ladder with one rung per game, over all games of all actors."""

    actor: int
    num_actors: int
    envs_per_actor: int

    def __call__(self, frames: int) -> np.ndarray:
        """Epsilon of each game of this actor, float [E]; the same at every frame count."""
        return self._epsilons

    @functools.cached_property
    def _epsilons(self) -> np.ndarray:
        first, num_rungs = self.actor * self.envs_per_actor, self.num_actors * self.envs_per_actor
        rungs = range(first, first + self.envs_per_actor)
        epsilons = np.array([ladder_epsilon(rung, num_rungs) for rung in rungs])
        epsilons.flags.writeable = False
        return epsilons


class Choice(NamedTuple):
    """Actions to play, and the greedy ones they came from."""

    actions: np.ndarray  # int32 [E]
    greedy: np.ndarray  # int32 [E]


def epsilon_greedy(
    greedy: np.ndarray, epsilon: Epsilon, num_actions: int, rng: np.random.Generator
) -> Choice:
    """Replaces each greedy action, with probability epsilon (its own, if [E]), by a uniform one."""
    # One draw for both: drawing integers costs several times as much.
    explore, uniform = rng.random((2, greedy.shape[0]))
    other = (uniform * num_actions).astype(np.int32)
    return Choice(np.where(explore < epsilon, other, greedy).astype(np.int32, copy=False), greedy)
