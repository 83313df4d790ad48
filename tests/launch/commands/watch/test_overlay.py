"""The panel beside the screen."""

import numpy as np
import pytest

from actors.screen import SCREEN_SHAPE
from launch.agent.agent import Moment
from launch.agent.heads import Heads
from launch.commands.watch.overlay import Overlay


def test_bars_have_the_length_of_their_values():
    overlay = Overlay(["NOOP", "FIRE"], "title")
    heads = Heads(np.array(0.5), np.array([1.0, -0.5]), np.array([0.75, 0.25]), q=None)
    stack, screen = np.zeros((4, 84, 84), np.uint8), np.zeros(SCREEN_SHAPE, np.uint8)
    moment = Moment(stack, screen, heads, action=0, greedy=True, score=3.0)
    panel = overlay.draw(moment)[:, 320:]
    green = (panel == (0x56, 0xD3, 0x64)).all(axis=2)[75:]
    widths = [row.sum() for row in green if row.any()]
    assert max(widths) == pytest.approx(3 * min(widths), rel=0.1)
    blue = (panel == (0x58, 0xA6, 0xFF)).all(axis=2)[75:]
    upper, lower = blue[:20].any(axis=0), blue[20:].any(axis=0)
    assert upper.nonzero()[0].min() > lower.nonzero()[0].max() - 2
