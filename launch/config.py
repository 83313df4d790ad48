"""The configuration of a run: frozen dataclasses, one default each, and the two presets.

The command line is derived from these classes, so a field's docstring is its help text. Components
never see them; `launch` takes them apart into keyword arguments.

Units are in the names. A frame is an emulator frame; an agent step is `action_repeat` frames, and
what `launch` counts of one becomes the other by `Config.frames_of` and `steps_of` (rates aside).
The bounds of a number and the pattern of a text stand beside the field's type.
"""

import dataclasses
import pathlib
import re
import types
from collections.abc import Mapping
from typing import Annotated, Literal

import tyro

from launch import names
from launch.bounds import COUNT, FRAMES, POSITIVE, SEED, SHARE, Bounds
from launch.flag_types import GameName, one_of
from launch.machine.device import DeviceName

# Longer items would save little more, and an actor's last incomplete ones are lost.
_MOST_ITEM_TRANSITIONS = 8
PresetName = Literal["cpu", "paper"]


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """The game."""

    game: Annotated[GameName, re.compile(r"\w+")] = "pong"
    """One of the 57 Atari games: ms_pacman, MsPacman and ms-pacman are the same."""
    full_action_set: bool = False
    """Use all 18 joystick actions instead of those the game needs."""
    action_repeat: Annotated[int, Bounds(1, 1_000)] = 4
    """Frames an action is held for."""
    max_episode_frames: Annotated[int, COUNT] = 108_000
    """Frames after which an episode is cut off (30 minutes of play)."""
    max_noops: Annotated[int, Bounds(0, 1_000)] = 30
    """An episode starts with a random number of no-ops, up to this."""
    min_noops: Annotated[int, Bounds(0, 1_000)] = 0
    """The fewest no-ops at a start; preset `paper` has 1, as dqn_zoo."""
    sticky_actions: Annotated[float, Bounds(0, 0.99)] = 0.0
    """Chance, at every frame, that the action of the frame before is played again; often 0.25."""


@dataclasses.dataclass(frozen=True)
class ActorConfig:
    """The processes that play."""

    actors: Annotated[int, Bounds(1, 10_000)] = 2
    """Number of actor processes."""
    envs_per_actor: Annotated[int, Bounds(1, 1_000)] = 8
    """Games each actor plays at once; one call of the network serves them all."""
    exploration: Literal["schedule", "ladder"] = "schedule"
    """Epsilon falls with global frames, or is fixed per game (Ape-X ladder over all games)."""
    final_epsilon: Annotated[float, SHARE] = 0.01
    """Where the schedule ends."""
    epsilon_decay_frames: Annotated[int | None, Bounds(0, 2**62)] = None
    """Global frames over which epsilon falls from 1; None means 2 % of the run's."""
    epsilon_after_warmup: bool = False
    """Epsilon stays 1 until learning starts, and falls from there; preset `paper` has it."""
    stale_params_seconds: Annotated[float, POSITIVE] = 300.0
    """Seconds without new parameters after which an actor stops with an error."""


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """The Reverb server."""

    replay_capacity_steps: Annotated[int, FRAMES] = 1_000_000
    """Agent steps kept; the oldest go first."""
    warmup_steps: Annotated[int, FRAMES] = 50_000
    """Agent steps in replay before learning starts."""
    samples_per_insert: Annotated[float, POSITIVE] = 8.0
    """How often an agent step is sampled on average (8 = a batch of 32 every 4 steps)."""
    error_buffer: Annotated[float | None, POSITIVE] = None
    """Samples by which the ratio may be off before one side waits; None chooses."""
    sample_streams: Annotated[int | None, Bounds(1, 64)] = None
    """Streams the learner samples by, a core of work each; None: one for two cores, 2 to 8."""
    prioritized: bool = False
    """Sample in proportion to absolute error instead of uniformly."""
    priority_alpha: Annotated[float, SHARE] = 0.6
    """Exponent of the priority."""
    priority_beta: Annotated[float, SHARE] = 0.4
    """Exponent of the importance correction."""
    replay_checkpoint_seconds: Annotated[float, POSITIVE] = 1800.0
    """How often replay is written to disk; the server stands still meanwhile."""
    colocate: bool = False
    """Serve replay from the learner's process, which then samples without the network."""
    port: Annotated[int, Bounds(0, 65_535)] = 0
    """Port of the Reverb server; 0 picks a free one."""


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """What is learned, and how."""

    algorithm: Annotated[str, names.SPEC, one_of(names.algorithm_names)] = "va"
    """The loss: VA-learning, Q-learning with behavior dueling or dueling, or plain Q-learning."""
    network: Annotated[str, names.SPEC, one_of(names.network_names)] = "nature"
    """Torso and size of the heads."""
    normalize: bool = False
    """Standardized input, layer normalization in every head, and outputs that start at zero."""
    n_step: Annotated[int, Bounds(1, 1_000)] = 5
    """Length of the window rewards are summed over."""
    gamma: Annotated[float, SHARE] = 0.99
    """Discount per agent step."""
    batch_size: Annotated[int, Bounds(1, 100_000)] = 32
    """Transitions per update."""
    updates_per_dispatch: Annotated[int, Bounds(1, 10_000)] = 4
    """Updates in one call of the device, each on a batch of its own; a few cost less than one."""
    device: DeviceName = "auto"
    """What it computes on; auto takes the accelerator that JAX sees, else the CPU."""
    matmul_precision: Literal["default", "high", "highest"] = "default"
    """Of float32 products: default is the device's quickest (bfloat16 on TPUs), highest float32."""
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """RMSProp is centered, with decay 0.95."""
    learning_rate: Annotated[float | None, Bounds(above=0, finite=True)] = None
    """None: the paper's, which depends on the algorithm and on n."""
    final_learning_rate: Annotated[float | None, Bounds(above=0, finite=True)] = None
    """Where the learning rate ends, falling in a straight line over the run; None keeps it."""
    optimizer_epsilon: Annotated[float, Bounds(above=0, finite=True)] = 0.01 / 32**2
    """Added inside the root of the second moment (RMSProp) or outside it (Adam)."""
    max_grad_norm: Annotated[float | None, Bounds(above=0, finite=True)] = None
    """Clip the global norm of the gradient."""
    target_period_updates: Annotated[int, COUNT] = 2500
    """Updates between copies to the target network."""
    behavior_target: Annotated[
        Literal["sampled", "distribution"], tyro.conf.arg(aliases=("--behaviour-target",))
    ] = "sampled"
    """Fit mu to the actions taken, or to the whole distribution they were drawn from."""
    bootstrap_mu: Literal["target", "online"] = "target"
    """Whose mu centers A in a bootstrap: the target network's, frozen between copies, or the online
    one, as the paper's Algorithms 2 and 3 may be read."""
    publish_period_updates: Annotated[int, COUNT] = 100
    """Updates between parameter broadcasts."""
    checkpoint_seconds: Annotated[float | None, POSITIVE] = None
    """How often the learner is written to disk; None: 60, or 300 with --serial and its replay."""
    keep_checkpoints: Annotated[int, COUNT] = 3
    """Learner checkpoints kept."""


@dataclasses.dataclass(frozen=True)
class EvaluatorConfig:
    """Whole episodes played by the newest parameters."""

    eval_period_frames: Annotated[int, FRAMES] = 1_000_000
    """Global frames between evaluations."""
    eval_episodes: Annotated[int, Bounds(1, 1_000)] = 10
    """Episodes per evaluation."""
    eval_frames: Annotated[int | None, FRAMES] = None
    """Frames of one game to play instead, as dqn_zoo; the mean is over episodes that end."""
    eval_epsilon: Annotated[float, SHARE] = 0.01
    """Exploration rate of the evaluation."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A whole run."""

    environment: EnvironmentConfig = EnvironmentConfig()
    actor: ActorConfig = ActorConfig()
    replay: ReplayConfig = ReplayConfig()
    learner: LearnerConfig = LearnerConfig()
    evaluator: EvaluatorConfig = EvaluatorConfig()
    frames: Annotated[int, FRAMES] = 200_000_000
    """Global frames to train for."""
    schedule_frames: Annotated[int | None, FRAMES] = None
    """Length of the run that epsilon and the learning rate are scheduled for; None: --frames."""
    seed: Annotated[int, SEED] = 1
    """The one seed; every role, game and restart derives its own."""
    report_seconds: Annotated[float, POSITIVE] = 5.0
    """How often roles report their rates."""
    # With a server that does not answer, a round of waiting takes up to 16 s.
    stuck_seconds: Annotated[float, Bounds(at_least=20)] = 120.0
    """Seconds after which a role whose loop stands still is started again; compiling gets more."""

    @property
    def total_steps(self) -> int:
        """Agent steps to train for."""
        return self.steps_of(self.frames)

    def frames_of(self, steps: int) -> int:
        """Emulator frames in a number of agent steps."""
        return steps * self.environment.action_repeat

    def steps_of(self, frames: int) -> int:
        """Whole agent steps in a number of emulator frames."""
        return frames // self.environment.action_repeat

    @property
    def sampled_transitions(self) -> int:
        """Transitions taken from replay at a time."""
        return self.learner.batch_size * self.learner.updates_per_dispatch

    @property
    def item_transitions(self) -> int:
        """Transitions in an item of replay: one for each update of a call, or a part of them.

        Priorities are of single transitions.
        """
        if self.replay.prioritized:
            return 1
        updates = self.learner.updates_per_dispatch
        return max(size for size in range(1, _MOST_ITEM_TRANSITIONS + 1) if updates % size == 0)

    @property
    def sampled_items(self) -> int:
        """Items taken from replay at a time."""
        return self.sampled_transitions // self.item_transitions

    @property
    def scheduled_frames(self) -> int:
        """Frames the schedules are made for, with the default filled in."""
        return self.frames if self.schedule_frames is None else self.schedule_frames

    def with_schedule(self) -> "Config":
        """The same config, with the frames that its schedules are made for spelled out."""
        return dataclasses.replace(self, schedule_frames=self.scheduled_frames)

    @property
    def scheduled_updates(self) -> int:
        """Updates the rate limiter allows in that time."""
        learned_from = self.steps_of(self.scheduled_frames) - self.replay.warmup_steps
        return max(int(learned_from * self.replay.samples_per_insert / self.learner.batch_size), 1)

    def save_seconds(self, *, serial: bool) -> float:
        """How often the learner is written to disk, with the default filled in."""
        given = self.learner.checkpoint_seconds
        if given is not None:
            return given
        return 300.0 if serial else 60.0

    @property
    def epsilon_decay_frames(self) -> int:
        """Frames over which epsilon falls, with the default filled in."""
        given = self.actor.epsilon_decay_frames
        return self.scheduled_frames // 50 if given is None else given

    @property
    def epsilon_start_frames(self) -> int:
        """Global frames from which on epsilon falls."""
        return self.frames_of(self.replay.warmup_steps) if self.actor.epsilon_after_warmup else 0


PRESETS: Mapping[str, Config] = types.MappingProxyType(
    {
        # The paper's agents, 200M frames: the class defaults, but for what followed dqn_zoo only
        # later. A stored config without those fields was run as their defaults say.
        "paper": Config(
            environment=EnvironmentConfig(min_noops=1),
            actor=ActorConfig(epsilon_after_warmup=True),
        ),
        # Learns Pong from scratch on two cores; docs/pong.md says how it was found.
        "cpu": Config(
            actor=ActorConfig(final_epsilon=0.05, epsilon_decay_frames=120_000),
            replay=ReplayConfig(
                replay_capacity_steps=100_000, warmup_steps=5_000, samples_per_insert=4.0
            ),
            learner=LearnerConfig(
                network="small",
                normalize=True,
                n_step=10,
                optimizer="adam",
                learning_rate=1e-4,
                # Gradients of the heads' large matrices are of this size and a little above.
                optimizer_epsilon=1e-6,
                target_period_updates=500,
            ),
            evaluator=EvaluatorConfig(eval_period_frames=200_000, eval_episodes=8),
            frames=2_000_000,
        ),
    }
)


def default_run_dir(config: Config, stamp: str) -> pathlib.Path:
    """A folder name no other run has."""
    algorithm = names.file_name(config.learner.algorithm)
    return pathlib.Path("runs") / f"{config.environment.game}-{algorithm}-{stamp}"
