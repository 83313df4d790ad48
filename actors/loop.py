"""The actor's loop: act in E games, turn the steps into n-step items, hand them on.

Edges are callables: `get_params` gives the newest parameters with their age, `write` takes rows and
items, `report` takes metrics. One batched forward per step serves all games. What a step made is
written while the emulators play the next one.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import dm_env
import numpy as np

from actors.environment import FIRST, LAST, AtariBatch
from actors.exploration import Choice, Epsilon, EpsilonFn, epsilon_greedy
from actors.n_step import Increment, NStepStream, Row
from actors.rng_state import pack_rng, unpack_rng


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
    write: Callable[[int, Increment, bool], None]  # stream, what to add, whether it ends there
    waited_seconds: Callable[[], float]  # total time writes were held back so far
    report: Callable[[dict[str, Any]], None]
    should_stop: Callable[[], bool]


class _Played(NamedTuple):
    """One step of all games."""

    stacks: np.ndarray  # acted on
    epsilon: Epsilon
    choice: Choice
    timestep: dm_env.TimeStep  # what came of it
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
        gamma: float,
        rng: np.random.Generator,
    ):
        self._environment = environment
        self._edges = edges
        self._epsilon_fn = epsilon_fn
        self._gamma = gamma
        self._rng = rng
        self._streams = [NStepStream(n_step) for _ in range(environment.num_envs)]
        self._stacks = environment.reset().observation.stack
        self._episode_return = np.zeros(environment.num_envs)
        self._episode_steps = [0] * environment.num_envs
        self._played: _Played | None = None  # and not yet handed on
        self.frames_played = 0

    def step(self) -> ActingParams:
        """Acts once in every game, and hands on the step before; returns what it acted with."""
        acting = self._edges.get_params()
        epsilon = self._epsilon_fn(acting.frames)
        greedy = self._edges.greedy_actions(acting.params, self._stacks)
        choice = epsilon_greedy(greedy, epsilon, self._environment.num_actions, self._rng)
        self._environment.send(choice.actions)
        self.hand_on()  # the emulators have threads of their own
        timestep = self._environment.recv()
        self._played = _Played(self._stacks, epsilon, choice, timestep, acting.frames)
        self._stacks = timestep.observation.stack
        played = np.count_nonzero(timestep.step_type != FIRST)
        self.frames_played += self._environment.action_repeat * int(played)
        return acting

    def hand_on(self) -> None:
        """Writes the newest step, unless that was done."""
        played, self._played = self._played, None
        if played is None:
            return
        timestep = played.timestep
        self._episode_return += timestep.observation.score
        step_types = timestep.step_type.tolist()
        for stream, (row, step_type) in enumerate(zip(self._rows(played), step_types, strict=True)):
            # The step out of a finished episode starts the next one; nothing was played.
            if step_type == FIRST:
                continue
            self._edges.write(stream, self._streams[stream].step(row), False)
            self._episode_steps[stream] += 1
            if step_type == LAST:
                self._ended(stream, timestep, played.frames)

    def state(self) -> dict[str, np.ndarray]:
        """All that decides what it does next, but for the games and for a step not handed on."""
        assert self._played is None
        return {
            "rng": pack_rng(self._rng),
            "rows": np.array([stream.num_rows for stream in self._streams]),
            "episode_return": self._episode_return.copy(),
            "episode_steps": np.array(self._episode_steps),
            "frames_played": np.array(self.frames_played),
        }

    def restore(self, state: Mapping[str, np.ndarray], stacks: np.ndarray) -> None:
        """Goes on from a `state`, with the games where they were then."""
        unpack_rng(self._rng, state["rng"])
        for stream, num_rows in zip(self._streams, state["rows"].tolist(), strict=True):
            stream.num_rows = num_rows
        self._episode_return = state["episode_return"].copy()
        self._episode_steps = state["episode_steps"].tolist()
        self.frames_played = int(state["frames_played"])
        self._stacks = stacks

    def _rows(self, played: _Played) -> Iterator[Row]:
        """One row per game; whole columns become Python numbers at once."""
        stacks, epsilon, choice, timestep, _ = played
        return map(
            Row,
            stacks[:, -1],
            choice.actions.tolist(),
            timestep.reward.tolist(),
            np.multiply(self._gamma, timestep.discount, dtype=np.float64).tolist(),
            np.full(len(stacks), epsilon).tolist(),
            choice.greedy.tolist(),
        )

    def _ended(self, stream: int, timestep: dm_env.TimeStep, frames: int) -> None:
        final_frame = timestep.observation.stack[stream, -1]
        terminated = bool(timestep.discount[stream] == 0.0)
        end = self._streams[stream].end(final_frame, terminated=terminated)
        self._edges.write(stream, end, True)
        self._edges.report(
            {
                "frames": frames,
                "episode_return": float(self._episode_return[stream]),
                "episode_frames": self._episode_steps[stream] * self._environment.action_repeat,
            }
        )
        self._episode_return[stream] = 0.0
        self._episode_steps[stream] = 0

    def epsilon(self, frames: int) -> float:
        """The exploration rate at a global frame count, averaged over the games."""
        return float(np.mean(self._epsilon_fn(frames)))


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
    actor.hand_on()
