"""Exploration: how epsilon is set, and epsilon-greedy choice for a batch of games."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

EpsilonFn = Callable[[int], float]  # of the global frame count


@dataclasses.dataclass(frozen=True)
class LinearEpsilon:
    """Falls from `initial` to `final` over the first `decay_frames` frames, then stays."""

    final: float
    decay_frames: int
    initial: float = 1.0

    def __call__(self, frames: int) -> float:
        """Epsilon at a global frame count."""
        done = min(frames / self.decay_frames, 1.0) if self.decay_frames > 0 else 1.0
        return self.initial + (self.final - self.initial) * done


def ladder_epsilon(actor: int, num_actors: int, *, base: float = 0.4, power: float = 7.0) -> float:
    """Ape-X: a fixed epsilon per actor, base ** (1 + power i / (N - 1))."""
    if num_actors == 1:
        return base
    return float(base ** (1.0 + power * actor / (num_actors - 1)))


class Choice(NamedTuple):
    """Actions taken, with the greedy ones they came from."""

    actions: np.ndarray  # int32 [E]
    greedy: np.ndarray  # int32 [E]


def epsilon_greedy(greedy: np.ndarray, epsilon: float, num_actions: int, rng: np.random.Generator
                   ) -> Choice:
    """Replaces each greedy action, with probability epsilon, by a uniform one."""
    explore = rng.random(greedy.shape[0]) < epsilon
    uniform = rng.integers(num_actions, size=greedy.shape[0], dtype=np.int32)
    return Choice(np.where(explore, uniform, greedy).astype(np.int32), greedy)
