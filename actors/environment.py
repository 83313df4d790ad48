"""Atari as dm_env time steps, on ale-py's C++ vector environment.

`AtariBatch` steps E games at once: every field of its time steps has a leading axis of length E,
and a game that ended is restarted by the next step (its FIRST step; that action is ignored).

Conventions:
- `reward` is clipped to [-1, 1]; the true score of the step is `observation.score`.
- `discount` is 0 where the game ended and, in training, where a life was lost; a lost life does not
  end the episode (`step_type` stays MID). Truncation at the frame limit keeps discount 1.
- Stacks are [4, 84, 84] uint8, oldest frame first; before the first frame they are zero. Every step
  returns new arrays: views of them stay valid.
- Step types of a batch are int8, equal to the numbers of `dm_env.StepType`.
- The seed fixes the number of no-ops at each start, and with it the games.
- `sticky_actions` is the chance, at every emulator frame, that the action of the frame before is
  played again instead of the one asked for (Machado et al. 2018). The seed fixes these draws too.
"""

from collections.abc import Callable
from typing import Any

import dm_env
import numpy as np
from ale_py.vector_env import AtariVectorEnv

from actors.games import check_game
from actors.observation import FRAME_SHAPE, STACK_SIZE, Observation

# As plain integers: comparing arrays with enum members is slow, and this is every step.
FIRST, MID, LAST = (
    int(dm_env.StepType.FIRST),
    int(dm_env.StepType.MID),
    int(dm_env.StepType.LAST),
)
_MAX_SEED = 2**31 - 1
_MAX_DRAWS = 100_000  # a bound on luck: one in a thousand would do


def make_emulators(
    game: str,
    num_envs: int,
    *,
    full_action_set: bool,
    action_repeat: int,
    max_episode_frames: int,
    max_noops: int,
    sticky_actions: float,
    **options: Any,
) -> AtariVectorEnv:
    """Emulators with our rules of play, on one thread; `options` say what their screens are."""
    check_game(game)
    return AtariVectorEnv(
        game,
        num_envs,
        frameskip=action_repeat,
        full_action_space=full_action_set,
        max_num_frames_per_episode=max_episode_frames,
        noop_max=max_noops + 1,  # theirs is exclusive
        num_threads=1,
        repeat_action_probability=sticky_actions,
        reward_clipping=False,
        # Pressing FIRE is the agent's own job, as in the paper's agents.
        use_fire_reset=False,
        **options,
    )


class AtariBatch:
    """E games of one kind, stepped together."""

    def __init__(
        self,
        game: str,
        *,
        num_envs: int,
        seed: int,
        full_action_set: bool,
        life_loss_ends_discount: bool,
        action_repeat: int,
        max_episode_frames: int,
        max_noops: int,
        min_noops: int,
        sticky_actions: float,
    ):
        _check_options(num_envs, seed, action_repeat, max_episode_frames, max_noops, min_noops)
        if not 0 <= sticky_actions < 1:
            raise ValueError(f"sticky_actions={sticky_actions}: at least 0 and less than 1")
        height, width = FRAME_SHAPE
        self._envs = make_emulators(
            game,
            num_envs,
            full_action_set=full_action_set,
            action_repeat=action_repeat,
            max_episode_frames=max_episode_frames,
            max_noops=max_noops,
            sticky_actions=sticky_actions,
            img_height=height,
            img_width=width,
            stack_num=STACK_SIZE,
        )
        self.num_envs = num_envs
        self.action_names = tuple(action.name for action in self._envs.ale.get_action_set())
        self.num_actions = len(self.action_names)
        self.action_repeat = action_repeat
        self._min_noops = min_noops
        self._life_loss_ends_discount = life_loss_ends_discount
        self._seed: int | None = int(seed)
        self._ended = np.zeros(num_envs, bool)
        self._lives = np.zeros(num_envs, np.int32)

    def reset(self) -> dm_env.TimeStep:
        """Starts all games anew. The first call seeds them; later ones continue the sequence."""
        started = self._envs.reset(seed=self._seed)
        self._seed = None  # seeding again would load the game from its file, which is slow
        stack, info = self._with_enough_noops(*started, np.ones(self.num_envs, bool))
        self._ended = np.zeros(self.num_envs, bool)
        self._lives = info["lives"]
        return dm_env.TimeStep(
            step_type=np.full(self.num_envs, FIRST, np.int8),
            reward=np.zeros(self.num_envs, np.float32),
            discount=np.ones(self.num_envs, np.float32),
            observation=Observation(stack, np.zeros(self.num_envs, np.float32)),
        )

    def step(self, actions: np.ndarray) -> dm_env.TimeStep:
        """Takes one action in each game; a game that ended restarts instead."""
        self.send(actions)
        return self.recv()

    def send(self, actions: np.ndarray) -> None:
        """The first half of a step: the emulators' threads start on it."""
        # The emulator's thread dies on an unknown action, and waiting for it never ends.
        if not all(0 <= action < self.num_actions for action in actions.tolist()):
            raise ValueError(f"actions {actions.tolist()} are not all in [0, {self.num_actions})")
        self._envs.send(actions.astype(np.int32))

    def recv(self) -> dm_env.TimeStep:
        """The second half: waits for the emulators; returns the time step they arrive at."""
        stack, score, terminated, truncated, info = self._envs.recv()
        first, last = self._ended, terminated | truncated
        if self._min_noops and first.any():
            stack, info = self._with_enough_noops(stack, info, first)
        lives = info["lives"]
        step_type = np.full(self.num_envs, MID, np.int8)
        step_type[first] = FIRST
        step_type[last] = LAST
        ended = terminated
        if self._life_loss_ends_discount:
            ended = terminated | ((lives < self._lives) & ~first)
        self._ended, self._lives = last, lives
        score = score.astype(np.float32)
        return dm_env.TimeStep(
            step_type=step_type,
            reward=np.minimum(np.maximum(score, -1.0), 1.0),
            discount=(~ended).astype(np.float32),
            observation=Observation(stack, score),
        )

    def close(self) -> None:
        """Ends the emulator threads."""
        self._envs.close()

    def _with_enough_noops(
        self, stack: np.ndarray, info: Any, first: np.ndarray
    ) -> tuple[np.ndarray, Any]:
        return with_enough_noops(
            self._envs, stack, info, first, self._min_noops, on_restart=self._started_again
        )

    def _started_again(self, games: np.ndarray) -> None:
        """Told of games whose start was thrown away; each start draws its no-ops anew."""


def with_enough_noops(
    envs: AtariVectorEnv,
    stack: np.ndarray,
    info: Any,
    first: np.ndarray,
    min_noops: int,
    *,
    on_restart: Callable[[np.ndarray], None] = lambda games: None,
) -> tuple[np.ndarray, Any]:
    """Starts the games among `first` again that began with too few no-ops, until none is left.

    The emulators draw from zero upward; drawing again leaves the other numbers equally likely.
    Returns all stacks and infos as they are then.
    """
    for _ in range(_MAX_DRAWS):
        # At a start the frames of an episode are its no-ops.
        again = first & (info["episode_frame_number"] < min_noops)
        if not again.any():
            return stack, info
        stack, info = envs.reset(options={"reset_mask": again})
        on_restart(again)
    raise RuntimeError(f"no start with {min_noops} no-ops in {_MAX_DRAWS} tries")


def _check_options(
    num_envs: int,
    seed: int,
    action_repeat: int,
    max_episode_frames: int,
    max_noops: int,
    min_noops: int,
) -> None:
    # The emulator takes what it is given: a negative seed, for one, is a random one.
    bounds = {
        "num_envs": (num_envs, 1),
        "seed": (seed, 0),
        "action_repeat": (action_repeat, 1),
        # An episode that ends among its no-ops would never have enough of them.
        "max_episode_frames": (max_episode_frames, min_noops + 1),
        "max_noops": (max_noops, 0),
        "min_noops": (min_noops, 0),
    }
    for name, (value, smallest) in bounds.items():
        if value < smallest:
            raise ValueError(f"{name}={value}: at least {smallest} is needed")
    if min_noops > max_noops:
        raise ValueError(f"min_noops={min_noops} is more than max_noops={max_noops}")
    if seed + num_envs - 1 > _MAX_SEED:
        raise ValueError(f"seed={seed}: each game's seed must fit in 31 bits")
