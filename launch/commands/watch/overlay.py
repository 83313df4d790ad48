"""What the agent thinks, drawn beside the screen: V(x), A(x, .), mu(.|x), the action taken."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from launch.agent.agent import Moment

SCALE = 2
_PANEL_WIDTH = 288
_MARGIN = 10
_BACKGROUND, _INK, _SOFT = "#11151a", "#e6e9ed", "#8b949e"
_CHOSEN, _ADVANTAGE, _BEHAVIOR, _VALUE = "#f2cc60", "#58a6ff", "#56d364", "#d2a8ff"


class Overlay:
    """Draws panels; the length of a bar is relative to the largest value seen so far."""

    def __init__(self, action_names: Sequence[str], title: str):
        self._names = action_names
        self._title = title
        self._largest_value = self._largest_advantage = 1e-6
        self._font = ImageFont.load_default(size=12)
        self._small = ImageFont.load_default(size=10)

    def draw(self, moment: Moment) -> np.ndarray:
        """The enlarged screen with the panel at its right, uint8 [height, width, 3]."""
        screen = enlarge(moment.screen)
        height = screen.shape[0]
        panel = Image.new("RGB", (_PANEL_WIDTH, height), _BACKGROUND)
        draw = ImageDraw.Draw(panel)
        draw.text((_MARGIN, 6), self._title, fill=_SOFT, font=self._small)
        draw.text((_MARGIN, 22), f"score {moment.score:,.0f}", fill=_INK, font=self._font)
        if moment.heads.value is not None:
            self._draw_value(draw, float(moment.heads.value))
        self._draw_actions(draw, moment, top=70, height=height - 74)
        return np.concatenate([screen, np.asarray(panel)], axis=1)

    def _draw_value(self, draw: ImageDraw.ImageDraw, value: float) -> None:
        self._largest_value = max(self._largest_value, abs(value))
        draw.text((_MARGIN, 40), f"V(x) {value:+.3f}", fill=_INK, font=self._font)
        _signed_bar(draw, 110, 42, _PANEL_WIDTH - _MARGIN, 12, value / self._largest_value, _VALUE)

    def _draw_actions(
        self, draw: ImageDraw.ImageDraw, moment: Moment, *, top: int, height: int
    ) -> None:
        heads = moment.heads
        name, values = ("A(x, a)", heads.advantage)
        if values is None:  # an algorithm without V
            name, values = ("Q(x, a)", heads.q)
        assert values is not None  # every agent has one of them
        self._largest_advantage = max(self._largest_advantage, float(np.abs(values).max()))
        advantage_left, behavior_left = 110, 206
        draw.text((advantage_left, top - 14), name, fill=_ADVANTAGE, font=self._small)
        if heads.mu is not None:
            draw.text((behavior_left, top - 14), "mu(a|x)", fill=_BEHAVIOR, font=self._small)
        row_height = min(height / len(self._names), 26)
        for index, action in enumerate(self._names):
            y = top + index * row_height
            if index == moment.action:
                mark = _CHOSEN if moment.greedy else _SOFT
                draw.rectangle((4, y, _PANEL_WIDTH - 5, y + row_height - 1), outline=mark)
            ink = _CHOSEN if index == moment.action else _INK
            middle = y + row_height / 2
            draw.text((_MARGIN, middle), action, fill=ink, font=self._small, anchor="lm")
            bar_top, thick = middle - 4, 8
            _signed_bar(
                draw, advantage_left, bar_top, behavior_left - 8, thick,
                float(values[index]) / self._largest_advantage, _ADVANTAGE,
            )  # fmt: skip
            if heads.mu is not None:
                length = (_PANEL_WIDTH - _MARGIN - behavior_left) * float(heads.mu[index])
                draw.rectangle(
                    (behavior_left, bar_top, behavior_left + length, bar_top + thick),
                    fill=_BEHAVIOR,
                )


def enlarge(pixels: np.ndarray) -> np.ndarray:
    """Every pixel `SCALE` times as wide and as high."""
    return pixels.repeat(SCALE, axis=0).repeat(SCALE, axis=1)


def _signed_bar(
    draw: ImageDraw.ImageDraw,
    left: float,
    top: float,
    right: float,
    thick: float,
    value: float,
    color: str,
) -> None:
    """A bar from the middle to the right (value 1) or to the left (value -1)."""
    middle = (left + right) / 2
    end = middle + value * (right - left) / 2
    draw.rectangle((min(middle, end), top, max(middle, end), top + thick), fill=color)
    draw.line((middle, top - 1, middle, top + thick + 1), fill=_SOFT)
