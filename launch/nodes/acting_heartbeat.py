"""The heartbeat of those who play: a beat with every step of their games."""

from collections.abc import Callable
from typing import Any

import numpy as np

from launch.heartbeat import Heartbeat, Phase

Greedy = Callable[[Any, np.ndarray], np.ndarray]  # params, stacks -> int32 [E]


def heard(heart: Heartbeat, phase: Phase, greedy: Greedy) -> Greedy:
    """The same greedy actions, asked for once in every step; the first time they are compiled."""
    steps = 0

    def greedy_heard(params: Any, stacks: np.ndarray) -> np.ndarray:
        nonlocal steps
        if steps == 0:
            heart.beat(Phase.COMPILING)
        actions = greedy(params, stacks)
        steps += 1
        heart.beat(phase, steps)
        return actions

    return greedy_heard
