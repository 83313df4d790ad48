"""`vantage watch RUN`: plays a checkpoint, to a video file or a window."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.progress import Progress

from actors.environment import LAST, AtariBatch
from actors.exploration import epsilon_greedy
from actors.screen import ColorTwin, Screen
from launch import build, config_checks
from launch.agent.stored_params import load_params, playing_epsilon
from launch.bounds import POSITIVE
from launch.commands.watch.overlay import Overlay, Thought, enlarge
from launch.commands.watch.video import make_sink
from launch.config import Config
from launch.errors import ExitCode
from launch.names import find_loss
from launch.run_dir import RunDir
from launch.terminal import say
from learner.acting import acting_params
from learner.networks import Network

_EMULATOR_FPS = 60


class Moment(NamedTuple):
    """A screen, what the agent makes of it, and the score so far."""

    screen: Screen
    thought: Thought
    score: float


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
    run_dir = RunDir(run)
    run_dir.check_own()
    config = run_dir.load_config()
    config_checks.check_config(config)
    epsilon = playing_epsilon(config, epsilon, seed=seed)
    POSITIVE.check(max_seconds=max_seconds)
    fps = _EMULATOR_FPS / config.environment.action_repeat
    stored = load_params(run_dir, config, checkpoint)
    title = f"{config.environment.game}, {config.learner.algorithm}, {stored.frames:,} frames"
    think = make_think(config, stored.params)
    with contextlib.closing(make_sink(out, title, fps=fps)) as sink, _game(config, seed) as game:
        draw = Overlay(game[1].action_names, title).draw
        limit = max(round(max_seconds * fps), 1)
        score = 0.0
        with Progress(transient=True, disable=out is None) as progress:
            task = progress.add_task("playing", total=limit)
            for index, moment in enumerate(play(*game, think, epsilon=epsilon, seed=seed)):
                score = moment.score
                picture = (
                    draw(moment.screen.pixels, moment.thought, score)
                    if overlay
                    else enlarge(moment.screen.pixels)
                )
                progress.advance(task)
                if not sink.show(picture) or index + 1 >= limit:
                    break
    say(f"{title}: score {score:,.0f} after {(index + 1) / fps:,.1f} s of play")
    if out is not None:
        say(f"written to {out}")
    return ExitCode.DONE


def make_think(config: Config, params: Any) -> Callable[[np.ndarray], Thought]:
    """What the network makes of a stack; the action is the greedy one."""
    loss, network = find_loss(config.learner.algorithm), build.network_of(config)
    if params.keys() == acting_params(params).keys() and loss.value_head:
        return _acting_think(network, params)

    @jax.jit
    def see(stack: jax.Array) -> Any:
        heads = jax.tree.map(lambda batch: batch[0], network.apply(params, stack[None]))
        return heads, loss.q_values(heads)

    def think(stack: np.ndarray) -> Thought:
        heads, q_values = jax.tree.map(np.asarray, see(stack))
        value = float(heads.value) if loss.value_head else None
        return Thought(
            value=value,
            # A raw A may drift by a constant; less its mean under the baseline it cannot.
            advantage=q_values if value is None else q_values - value,
            behavior=np.asarray(jax.nn.softmax(heads.logits)) if loss.behavior_head else None,
            action=int(heads.advantage.argmax()),
            greedy=True,
            is_q=value is None,
        )

    return think


def _acting_think(network: Network, params: Any) -> Callable[[np.ndarray], Thought]:
    """Of parameters that only act: neither V nor mu, and A less its mean."""
    see = jax.jit(lambda stack: network.advantage(params, stack[None])[0])

    def think(stack: np.ndarray) -> Thought:
        advantage = np.asarray(see(stack))
        return Thought(
            value=None,
            advantage=advantage - advantage.mean(),
            behavior=None,
            action=int(advantage.argmax()),
            greedy=True,
        )

    return think


def play(
    environment: AtariBatch,
    twin: ColorTwin,
    think: Callable[[np.ndarray], Thought],
    *,
    epsilon: float,
    seed: int,
) -> Iterator[Moment]:
    """One episode; the last moment is the last screen on which an action was taken."""
    rng = np.random.default_rng(seed)
    timestep, screen = environment.reset(), twin.reset()
    score = 0.0
    while True:
        thought = think(timestep.observation.stack[0])
        greedy = np.array([thought.action], np.int32)
        action = epsilon_greedy(greedy, epsilon, environment.num_actions, rng).actions
        chosen = thought._replace(action=int(action[0]), greedy=bool(action[0] == greedy[0]))
        yield Moment(screen, chosen, score)
        timestep, screen = environment.step(action), twin.step(int(action[0]))
        if screen.score != timestep.observation.score[0]:
            raise RuntimeError(
                f"the color screen is of another game: it scored {screen.score}, "
                f"the agent's {timestep.observation.score[0]}"
            )
        score += screen.score
        if timestep.step_type[0] == LAST:
            yield Moment(screen, chosen, score)
            return


@contextlib.contextmanager
def _game(config: Config, seed: int) -> Iterator[tuple[AtariBatch, ColorTwin]]:
    environment = build.make_environment(config, num_envs=1, seed=seed, training=False)
    options = config.environment
    twin = ColorTwin(
        options.game,
        seed=seed,
        full_action_set=options.full_action_set,
        action_repeat=options.action_repeat,
        max_episode_frames=options.max_episode_frames,
        max_noops=options.max_noops,
        min_noops=options.min_noops,
        sticky_actions=options.sticky_actions,
    )
    try:
        yield environment, twin
    finally:
        environment.close()
        twin.close()
