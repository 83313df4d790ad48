"""`vantage watch RUN`: plays a checkpoint, to a video file or a window."""

import contextlib
import pathlib

from rich.progress import Progress

from launch.agent.agent import check_playing, load_agent
from launch.bounds import POSITIVE
from launch.commands.watch.overlay import Overlay, enlarge
from launch.commands.watch.video import make_sink
from launch.errors import ExitCode
from launch.terminal import say

_EMULATOR_FPS = 60


def watch(
    run: pathlib.Path,
    checkpoint: str,
    out: pathlib.Path | None,
    overlay: bool,
    epsilon: float | None,
    seed: int,
    max_seconds: float,
) -> ExitCode:
    """Shows one episode, or its first `max_seconds`."""
    check_playing(epsilon=epsilon, seed=seed)
    POSITIVE.check(max_seconds=max_seconds)
    agent = load_agent(run, checkpoint)
    config = agent.config
    fps = _EMULATOR_FPS / config.environment.action_repeat
    title = f"{config.environment.game}, {config.learner.algorithm}, {agent.frames:,} frames"
    panel = Overlay(agent.action_names, title)
    episode = agent.episode(epsilon=epsilon, seed=seed)
    with (
        contextlib.closing(make_sink(out, title, fps=fps)) as sink,
        contextlib.closing(episode),
        Progress(transient=True, disable=out is None) as progress,
    ):
        limit = max(round(max_seconds * fps), 1)
        task = progress.add_task("playing", total=limit)
        for shown, moment in enumerate(episode, start=1):
            picture = panel.draw(moment) if overlay else enlarge(moment.screen)
            progress.advance(task)
            if not sink.show(picture) or shown >= limit:
                break
    say(f"{title}: score {moment.score:,.0f} after {shown / fps:,.1f} s of play")
    if out is not None:
        say(f"written to {out}")
    return ExitCode.DONE
