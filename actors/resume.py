"""What a serial run needs to continue exactly: games and random generators as arrays.

The vector emulator cannot save its state, but it is deterministic: where a game stands depends on
its seed, on how often it was restarted (each restart draws the number of no-ops) and on the actions
since the last restart; a restart forgets everything else. So that is what is recorded, one byte a
step and one episode at most, and `restore` plays it again. It takes as long as the games took to
get there from their last restart, plus a restart for each episode before.

Sticky actions are out of its reach: the emulator draws for them at every frame, a restart does not
begin these draws anew, and so a game would depend on all frames since its seed.
"""

import json
from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

from actors.environment import FIRST, AtariBatch


class RecordedBatch(AtariBatch):
    """Counts restarts and keeps the actions since the last one, game by game."""

    def __init__(
        self, game: str, *, num_envs: int, seed: int, sticky_actions: float, **options: Any
    ):
        if sticky_actions:
            raise ValueError(f"sticky_actions={sticky_actions}: such games cannot be put back")
        super().__init__(
            game, num_envs=num_envs, seed=seed, sticky_actions=sticky_actions, **options
        )
        self._seeds = seed + np.arange(num_envs)
        self._restarts = np.zeros(num_envs, np.int64)
        self._actions = [bytearray() for _ in range(num_envs)]
        self._sent: list[int] = []

    def reset(self) -> dm_env.TimeStep:
        """Starts all games anew, as `AtariBatch.reset` does."""
        timestep = super().reset()
        self._restarts += 1
        self._actions = [bytearray() for _ in range(self.num_envs)]
        return timestep

    def send(self, actions: np.ndarray) -> None:
        """Starts a step, as `AtariBatch.send` does."""
        super().send(actions)
        self._sent = actions.tolist()

    def recv(self) -> dm_env.TimeStep:
        """Ends it, as `AtariBatch.recv` does."""
        timestep = super().recv()
        starts = (timestep.step_type == FIRST).tolist()
        for game, (action, first) in enumerate(zip(self._sent, starts, strict=True)):
            if first:
                self._restarts[game] += 1
                self._actions[game] = bytearray()
            else:
                self._actions[game].append(action)
        return timestep

    def _started_again(self, games: np.ndarray) -> None:
        self._restarts += games

    def state(self) -> dict[str, np.ndarray]:
        """What `restore` needs."""
        return {
            "restarts": self._restarts.copy(),
            "lengths": np.array([len(actions) for actions in self._actions], np.int64),
            "actions": np.frombuffer(b"".join(self._actions), np.uint8),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """Plays the record again; returns the stacks it ends with, None if nothing was started."""
        self._restarts = state["restarts"].copy()
        ends = np.cumsum(state["lengths"])[:-1]
        self._actions = [bytearray(part) for part in np.split(state["actions"], ends)]
        if not self._restarts.all():  # all games are first started together
            return None
        self._seed = None
        self._ended = np.zeros(self.num_envs, bool)
        self._envs.reset(seed=self._seeds)  # the emulator wants one of all games first
        # Games step together, so all must arrive together: the shorter ones start later. Until then
        # they are stepped for nothing; a start with a seed forgets it.
        longest = int(state["lengths"].max())
        starts_at = longest - state["lengths"]
        for now in range(longest):
            if (starts_at == now).any():
                self._start(starts_at == now)
            played = [
                actions[now - start] if now >= start else 0
                for actions, start in zip(self._actions, starts_at.tolist(), strict=True)
            ]
            stack, _, terminated, truncated, info = self._envs.step(np.array(played, np.int32))
            self._ended, self._lives = terminated | truncated, info["lives"]
        just_started = starts_at == longest
        if just_started.any():
            stack = self._start(just_started)
            self._ended[just_started] = False
        return stack

    def _start(self, which: np.ndarray) -> np.ndarray:
        """Seeds these games and restarts them as often as they were; returns all stacks."""
        options = {"reset_mask": which}
        stack, info = self._envs.reset(seed=self._seeds[which], options=options)
        for again in range(1, int(self._restarts[which].max(initial=1))):
            options = {"reset_mask": which & (self._restarts > again)}
            stack, info = self._envs.reset(options=options)
        self._lives = info["lives"]
        return stack


def pack_rng(rng: np.random.Generator) -> np.ndarray:
    """A generator's state as bytes of JSON, uint8 [N]."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), np.uint8)


def unpack_rng(rng: np.random.Generator, packed: np.ndarray) -> None:
    """Puts a generator into a state that `pack_rng` returned."""
    rng.bit_generator.state = json.loads(packed.tobytes())
