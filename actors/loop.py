"""The actor's loop: act in E games, turn the steps into rows and items, write them.

Edges are callables: `get_params` gives the newest parameters with their age, `write` takes rows and
items, `report` takes metrics. One batched forward per step serves all games.

Writing is a pipeline of depth one: a step is written while the emulators, which have threads of
their own, play the next one. So nothing waits for the writer, and `flush` writes the last step.
With depth zero a step is written before `step` returns, and playing waits for it.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import dm_env
import numpy as np

from actors.environment import FIRST, LAST, AtariBatch
from actors.exploration import Choice, Epsilon, EpsilonFn, epsilon_greedy
from actors.n_step import Increment, NStepStream, Row
from actors.resume import pack_rng, unpack_rng


class ActingParams(NamedTuple):
    """Parameters ready to act with."""

    params: Any
    version: int
    frames: int  # global frames when they were published
    age_seconds: float


@dataclasses.dataclass(frozen=True)
class ActorEdges:
    """Everything the loop reaches outside itself."""

    get_params: Callable[[], ActingParams]
    greedy_actions: Callable[[Any, np.ndarray], np.ndarray]  # params, stacks -> int32 [E]
    write: Callable[[int, Increment], None]  # number of the game, what its step adds
    waited_seconds: Callable[[], float]  # total time writes were held back so far
    report: Callable[[dict[str, Any]], None]
    should_stop: Callable[[], bool]


class _Played(NamedTuple):
    """One step of all games."""

    stacks: np.ndarray  # acted on
    epsilon: Epsilon
    choice: Choice
    timestep: dm_env.TimeStep  # the consequences
    frames: int  # global frames of the parameters acted with


class Actor:
    """Plays E games; each `step` advances all of them by one action."""

    def __init__(
        self,
        environment: AtariBatch,
        edges: ActorEdges,
        *,
        epsilon_fn: EpsilonFn,
        n_step: int,
        item_transitions: int,
        gamma: float,
        rng: np.random.Generator,
        pipeline_depth: Literal[0, 1],
    ):
        self._environment = environment
        self._edges = edges
        self._epsilon_fn = epsilon_fn
        self._gamma = gamma
        self._rng = rng
        self._pipeline_depth = pipeline_depth
        self._streams = [NStepStream(n_step, item_transitions) for _ in range(environment.num_envs)]
        self._stacks = environment.reset().observation.stack
        self._episode_return = np.zeros(environment.num_envs)
        self._unwritten: _Played | None = None
        self.frames_played = 0

    def step(self) -> ActingParams:
        """Acts once in every game; returns what it acted with."""
        acting = self._edges.get_params()
        epsilon = self._epsilon_fn(acting.frames)
        greedy = self._edges.greedy_actions(acting.params, self._stacks)
        choice = epsilon_greedy(greedy, epsilon, self._environment.num_actions, self._rng)
        self._environment.send(choice.actions)
        self.flush()  # the step before, while the emulators play this one
        timestep = self._environment.recv()
        self._unwritten = _Played(self._stacks, epsilon, choice, timestep, acting.frames)
        self._stacks = timestep.observation.stack
        num_played = np.count_nonzero(timestep.step_type != FIRST)
        self.frames_played += self._environment.action_repeat * int(num_played)
        if self._pipeline_depth == 0:
            self.flush()
        return acting

    def flush(self) -> None:
        """Writes the step that is still in the pipeline, if there is one."""
        played, self._unwritten = self._unwritten, None
        if played is None:
            return
        timestep = played.timestep
        self._episode_return += timestep.observation.score
        step_types = timestep.step_type.tolist()
        for game, (row, step_type) in enumerate(zip(self._rows(played), step_types, strict=True)):
            # The step out of a finished episode starts the next one; nothing was played.
            if step_type == FIRST:
                continue
            self._edges.write(game, self._streams[game].step(row))
            if step_type == LAST:
                self._end_episode(game, timestep, played.frames)

    def epsilon(self, frames: int) -> float:
        """The exploration rate at a global frame count, averaged over the games."""
        return float(np.mean(self._epsilon_fn(frames)))

    def state(self) -> dict[str, np.ndarray]:
        """All that decides what it does next, but for the games; the pipeline must be empty."""
        assert self._unwritten is None
        return {
            "rng": pack_rng(self._rng),
            "episode_return": self._episode_return.copy(),
            "streams": np.stack([stream.state() for stream in self._streams]),
            "frames_played": np.array(self.frames_played),
        }

    def restore(self, state: Mapping[str, np.ndarray], stacks: np.ndarray) -> None:
        """Goes on from a `state`, with the games where they were then."""
        unpack_rng(self._rng, state["rng"])
        for stream, stored in zip(self._streams, state["streams"], strict=True):
            stream.restore(stored)
        self._episode_return = state["episode_return"].copy()
        self.frames_played = int(state["frames_played"])
        self._stacks = stacks

    def _rows(self, played: _Played) -> list[Row]:
        """One row per game."""
        # Whole columns become Python numbers at once: one by one costs several times as much.
        actions, greedy = played.choice.actions.tolist(), played.choice.greedy.tolist()
        rewards = played.timestep.reward.tolist()
        discount = np.multiply(self._gamma, played.timestep.discount, dtype=np.float64).tolist()
        epsilon = np.full(len(actions), played.epsilon).tolist()
        return [
            Row(
                frame=played.stacks[game, -1],
                action=action,
                reward=rewards[game],
                discount=discount[game],
                epsilon=epsilon[game],
                greedy=greedy[game],
            )
            for game, action in enumerate(actions)
        ]

    def _end_episode(self, game: int, timestep: dm_env.TimeStep, frames: int) -> None:
        stream = self._streams[game]
        episode_frames = stream.episode_steps * self._environment.action_repeat
        final_frame = timestep.observation.stack[game, -1]
        terminated = bool(timestep.discount[game] == 0.0)
        end = stream.end(final_frame, terminated=terminated)
        if end.rows:
            self._edges.write(game, end)
        self._edges.report(
            {
                "frames": frames,
                "episode_return": float(self._episode_return[game]),
                "episode_frames": episode_frames,
            }
        )
        self._episode_return[game] = 0.0


def run_actor(
    actor: Actor,
    edges: ActorEdges,
    *,
    report_seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Plays until told to stop, reporting rates now and then."""
    reported_at = clock()
    frames_before, waited_before = actor.frames_played, edges.waited_seconds()
    while not edges.should_stop():
        acting = actor.step()
        now = clock()
        seconds = now - reported_at
        if seconds < report_seconds:
            continue
        waited = edges.waited_seconds()
        edges.report(
            {
                "frames": acting.frames,
                "frames_per_second": (actor.frames_played - frames_before) / seconds,
                "params_age_seconds": acting.age_seconds,
                "params_version": acting.version,
                "insert_wait_fraction": (waited - waited_before) / seconds,
                "epsilon": actor.epsilon(acting.frames),
            }
        )
        reported_at, frames_before, waited_before = now, actor.frames_played, waited
    actor.flush()
