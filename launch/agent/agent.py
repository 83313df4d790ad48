"""An agent: the parameters of a run, ready to look at stacks, to act and to play.

`vantage eval`, `vantage watch` and `vantage.load` are made of it. It computes on the CPU, unless
its process has taken an accelerator before.
"""

import contextlib
import os
import pathlib
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import jax
import numpy as np

from actors.environment import LAST, AtariBatch
from actors.evaluate import EpisodeScores, games_at_once, play_episodes
from actors.exploration import epsilon_greedy
from actors.observation import OBSERVATION_SHAPE
from launch import build, config_checks
from launch.agent.heads import Heads, make_heads
from launch.agent.stored_params import NEWEST, StoredParams, load_params
from launch.bounds import COUNT, SEED, SHARE
from launch.config import Config
from launch.run_dir import RunDir
from learner import acting


class Moment(NamedTuple):
    """A moment of an episode: what was seen, what the agent made of it, what it did."""

    stack: np.ndarray  # uint8 [4, 84, 84]: what the agent sees
    screen: np.ndarray  # uint8 [210, 160, 3]: what a person sees
    heads: Heads
    action: int
    greedy: bool  # the action is the agent's own, not an exploring one
    score: float  # so far


class Agent:
    """What a run has learned."""

    def __init__(self, config: Config, stored: StoredParams):
        self.config = config
        self.params: Any = stored.params
        """Module -> name -> array, as Haiku has them."""
        self.frames = stored.frames
        """Global frames it was trained for."""
        self.updates = stored.updates
        """Updates it was trained for; None where nobody counted them."""
        environment = config.environment
        self.action_names = build.action_names(environment.game, environment.full_action_set)
        """What the numbers of actions mean."""
        self._heads = make_heads(config, stored.params)
        self._acting_params = acting.acting_params(stored.params)
        self._greedy = acting.make_greedy(build.network_of(config))

    def heads(self, stack: np.ndarray) -> Heads:
        """V, A, mu and Q of a stack, uint8 [4, 84, 84], or of a batch of them."""
        found = self._heads(_batch_of(stack))
        return found if stack.ndim == 4 else jax.tree.map(lambda batch: batch[0], found)

    def act(self, stack: np.ndarray) -> np.ndarray | np.int32:
        """The greedy action for a stack, or those for a batch of them."""
        actions = self._greedy(self._acting_params, _batch_of(stack))
        return actions if stack.ndim == 4 else actions[0]

    def play(
        self,
        episodes: int = 1,
        *,
        epsilon: float | None = None,
        seed: int = 0,
        on_episode: Callable[[float], None] = lambda episode_return: None,
    ) -> EpisodeScores:
        """Plays whole episodes, several at a time; returns their true scores and their lengths.

        Without an epsilon it plays with that of the run's own evaluations.
        """
        COUNT.check(episodes=episodes)
        check_playing(epsilon=epsilon, seed=seed)
        environment = self._make_environment(games_at_once(episodes), seed)
        with contextlib.closing(environment):
            scores = play_episodes(
                environment,
                lambda stacks: self._greedy(self._acting_params, stacks),
                episodes=episodes,
                epsilon=self.playing_epsilon(epsilon),
                rng=np.random.default_rng(seed),
                on_episode=on_episode,
            )
        assert scores is not None  # nothing stops it
        return scores

    def episode(
        self, *, epsilon: float | None = None, seed: int = 0
    ) -> Generator[Moment, None, None]:
        """One episode, moment by moment; the action of the last one is no longer played."""
        check_playing(epsilon=epsilon, seed=seed)
        epsilon = self.playing_epsilon(epsilon)
        rng = np.random.default_rng(seed)
        environment = self._make_environment(1, seed)
        twin = build.make_color_twin(self.config, seed=seed)
        with contextlib.closing(environment), contextlib.closing(twin):
            timestep, screen, score = environment.reset(), twin.reset(), 0.0
            while True:
                stack = timestep.observation.stack[0]
                greedy = self.act(stack)
                choice = epsilon_greedy(np.array([greedy]), epsilon, environment.num_actions, rng)
                action = int(choice.actions[0])
                yield Moment(
                    stack, screen.pixels, self.heads(stack), action, bool(action == greedy), score
                )
                if timestep.step_type[0] == LAST:
                    return
                timestep, screen = environment.step(choice.actions), twin.step(action)
                if screen.score != timestep.observation.score[0]:
                    raise RuntimeError(
                        f"the color screen is of another game: it scored {screen.score}, "
                        f"the agent's {timestep.observation.score[0]}"
                    )
                score += screen.score

    def playing_epsilon(self, asked: float | None) -> float:
        """The exploration rate asked for, or that of the run's own evaluations."""
        return self.config.evaluator.eval_epsilon if asked is None else asked

    def _make_environment(self, num_envs: int, seed: int) -> AtariBatch:
        return build.make_environment(self.config, num_envs=num_envs, seed=seed, training=False)


def load_agent(run: str | os.PathLike[str], checkpoint: str = NEWEST) -> Agent:
    """The agent of a run directory: its `newest` checkpoint, its `best`, or one by its updates.

    Raises InputError, in one line, for what is no run of this user's, or has no such checkpoint.
    """
    run_dir = RunDir(pathlib.Path(run))
    run_dir.check_own()
    config = run_dir.load_config()
    config_checks.check_config(config)
    return Agent(config, load_params(run_dir, config, checkpoint))


def check_playing(*, epsilon: float | None, seed: int) -> None:
    """Raises InputError for a rate or a seed that there cannot be."""
    SHARE.check(epsilon=epsilon)
    SEED.check(seed=seed)


def _batch_of(stack: np.ndarray) -> np.ndarray:
    stacks = stack if stack.ndim == 4 else stack[None]
    if stacks.shape[1:] != OBSERVATION_SHAPE or stacks.dtype != np.uint8:
        raise ValueError(
            f"a stack of {stack.dtype}{list(stack.shape)} is not one of "
            f"uint8{list(OBSERVATION_SHAPE)}, nor a batch of them"
        )
    return stacks
