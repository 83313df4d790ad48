"""Real frames for stages that must not pay for an emulator: a short game of random actions."""

import itertools
from collections.abc import Iterator

import numpy as np

from actors.environment import FIRST, LAST, AtariBatch
from actors.n_step import Increment, NStepStream, Row
from launch import build
from launch.config import Config

_STEPS = 2000


def record_rows(config: Config, steps: int = _STEPS) -> list[Row]:
    """Rows of one game under random actions; episode ends are left out."""
    environment = build.make_environment(config, num_envs=1, seed=1, training=True)
    rng = np.random.default_rng(1)
    try:
        return list(itertools.islice(_play(environment, config.learner.gamma, rng), steps))
    finally:
        environment.close()


def increments(config: Config, rows: list[Row]) -> Iterator[Increment]:
    """The rows over and over as one endless episode."""
    stream = NStepStream(config.learner.n_step, config.item_transitions)
    return map(stream.step, itertools.cycle(rows))


def _play(environment: AtariBatch, gamma: float, rng: np.random.Generator) -> Iterator[Row]:
    timestep = environment.reset()
    while True:
        action = rng.integers(0, environment.num_actions, 1)
        frame = timestep.observation.stack[0, -1]
        timestep = environment.step(action)
        if timestep.step_type[0] not in (FIRST, LAST):
            yield Row(
                frame=frame,
                action=int(action[0]),
                reward=float(timestep.reward[0]),
                discount=gamma,
                epsilon=1.0,
                greedy=int(action[0]),
            )
