"""Those who play beat with every step, and say when they compile."""

import numpy as np

from launch.heartbeat import Beat, Phase
from launch.nodes.acting_heartbeat import heard


class Heart:
    """Writes beats down."""

    def __init__(self):
        self.beats: list[Beat] = []

    def beat(self, phase: Phase, number: int = 0) -> None:
        self.beats.append(Beat(phase, number))


def test_every_step_is_a_beat_and_the_first_one_compiles():
    heart = Heart()
    greedy = heard(heart, Phase.PLAYING, lambda params, stacks: stacks + params)
    actions = [greedy(1, np.arange(2)).tolist() for _ in range(2)]
    assert actions == [[1, 2]] * 2
    assert heart.beats == [
        Beat(Phase.COMPILING),
        Beat(Phase.PLAYING, 1),
        Beat(Phase.PLAYING, 2),
    ]
