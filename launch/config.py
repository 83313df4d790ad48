"""The configuration of a run: frozen dataclasses, one default each, and the two presets.

The command line is derived from these classes, so a field's docstring is its help text. Components
never see them; `launch` takes them apart into keyword arguments.

Units are in the names. A frame is an emulator frame; an agent step is `action_repeat` frames.
"""

import dataclasses
import pathlib
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal

Algorithm = Literal["va", "behavior_dueling", "dueling", "q"]
NetworkName = Literal["nature", "nips2013", "small", "tiny"]
PresetName = Literal["cpu", "paper"]


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """The game."""

    game: str = "pong"
    """One of the 57 Atari games, in snake case (ms_pacman)."""
    full_action_set: bool = False
    """Use all 18 joystick actions instead of those the game needs."""
    action_repeat: int = 4
    """Frames an action is held for."""
    max_episode_frames: int = 108_000
    """Frames after which an episode is cut off (30 minutes of play)."""
    max_noops: int = 30
    """An episode starts with a random number of no-ops, up to this."""


@dataclasses.dataclass(frozen=True)
class ActorConfig:
    """The processes that play."""

    actors: int = 2
    """Number of actor processes."""
    envs_per_actor: int = 8
    """Games each actor plays at once; more of them share the cost of a call of the network."""
    exploration: Literal["schedule", "ladder"] = "schedule"
    """Epsilon falls with global frames, or is fixed per game (Ape-X ladder over all games)."""
    final_epsilon: float = 0.01
    """Where the schedule ends."""
    epsilon_decay_frames: int | None = None
    """Global frames over which epsilon falls from 1; None means the first 2 % of the run."""
    stale_params_seconds: float = 300.0
    """An actor without new parameters for so long stops with an error."""


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """The Reverb server."""

    replay_capacity_steps: int = 1_000_000
    """Agent steps kept; the oldest go first."""
    warmup_steps: int = 50_000
    """Agent steps in replay before learning starts."""
    samples_per_insert: float = 8.0
    """How often an agent step is sampled on average (8 = a batch of 32 every 4 steps)."""
    error_buffer: float | None = None
    """Samples by which the ratio may be off before one side waits; None chooses."""
    prioritized: bool = False
    """Sample in proportion to absolute error instead of uniformly."""
    priority_alpha: float = 0.6
    """Exponent of the priority."""
    priority_beta: float = 0.4
    """Exponent of the importance correction."""
    replay_checkpoint_seconds: float = 1800.0
    """How often replay is written to disk; the server stands still meanwhile."""
    colocate: bool = False
    """Serve replay from the learner's process, which then samples without the network."""
    port: int = 0
    """Port of the Reverb server; 0 picks a free one."""


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
    """What is learned, and how."""

    algorithm: Algorithm = "va"
    """VA-learning, Q-learning with behavior dueling or dueling, or plain n-step Q-learning."""
    network: NetworkName = "nature"
    """Torso and size of the heads."""
    normalize: bool = False
    """Standardized input, layer normalization in every head, and outputs that start at zero."""
    n_step: int = 5
    """Length of the window rewards are summed over."""
    gamma: float = 0.99
    """Discount per agent step."""
    batch_size: int = 32
    """Transitions per update."""
    updates_per_dispatch: int = 4
    """Updates in one call of the device, each on a batch of its own; a few cost less than one."""
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """RMSProp is centered, with decay 0.95."""
    learning_rate: float | None = None
    """None: the paper's, which depends on the algorithm and on n."""
    final_learning_rate: float | None = None
    """Where the learning rate ends, falling in a straight line over the run; None keeps it."""
    optimizer_epsilon: float = 0.01 / 32**2
    """Added inside the root of the second moment (RMSProp) or outside it (Adam)."""
    max_grad_norm: float | None = None
    """Clip the global norm of the gradient."""
    target_period_updates: int = 2500
    """Updates between copies to the target network."""
    behaviour_target: Literal["sampled", "distribution"] = "sampled"
    """Fit mu to the actions taken, or to the whole distribution they were drawn from."""
    publish_period_updates: int = 100
    """Updates between parameter broadcasts."""
    checkpoint_seconds: float = 300.0
    """How often the learner is written to disk."""
    keep_checkpoints: int = 3
    """Learner checkpoints kept."""


@dataclasses.dataclass(frozen=True)
class EvaluatorConfig:
    """Whole episodes played by the newest parameters."""

    eval_period_frames: int = 1_000_000
    """Global frames between evaluations."""
    eval_episodes: int = 10
    """Episodes per evaluation."""
    eval_epsilon: float = 0.01
    """Exploration rate of the evaluation."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A whole run."""

    environment: EnvironmentConfig = EnvironmentConfig()
    actor: ActorConfig = ActorConfig()
    replay: ReplayConfig = ReplayConfig()
    learner: LearnerConfig = LearnerConfig()
    evaluator: EvaluatorConfig = EvaluatorConfig()
    frames: int = 200_000_000
    """Global frames to train for."""
    seed: int = 1
    """The one seed; every role, game and restart derives its own."""
    report_seconds: float = 5.0
    """How often roles report their rates."""

    @property
    def total_steps(self) -> int:
        """Agent steps to train for."""
        return self.frames // self.environment.action_repeat

    def frames_of(self, steps: int) -> int:
        """Emulator frames in a number of agent steps; steps become frames here and nowhere else."""
        return steps * self.environment.action_repeat

    @property
    def sampled_items(self) -> int:
        """Transitions taken from replay at a time."""
        return self.learner.batch_size * self.learner.updates_per_dispatch

    @property
    def total_updates(self) -> int:
        """Updates the rate limiter allows in that many steps."""
        learned_from = self.total_steps - self.replay.warmup_steps
        return int(learned_from * self.replay.samples_per_insert / self.learner.batch_size)

    @property
    def epsilon_decay_frames(self) -> int:
        """Frames over which epsilon falls, with the default filled in."""
        given = self.actor.epsilon_decay_frames
        return self.frames // 50 if given is None else given

    @property
    def learning_rate(self) -> float:
        """The learning rate, with the paper's filled in where none is given."""
        if self.learner.learning_rate is not None:
            return self.learner.learning_rate
        if self.learner.algorithm != "q":
            return 1.5e-5
        return 2.5e-4 if self.learner.n_step == 1 else 5e-5


PRESETS: Mapping[str, Config] = types.MappingProxyType(
    {
        # The paper's agents, 200M frames. The class defaults are this preset.
        "paper": Config(),
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


def to_json(config: Config) -> dict[str, Any]:
    """A config as plain nested dictionaries."""
    return dataclasses.asdict(config)


def from_json(stored: Mapping[str, Any]) -> Config:
    """The inverse of `to_json`; unknown and missing fields are errors that name them."""
    return _build(Config, stored, "config")


def leaf_values(config: Config) -> dict[str, Any]:
    """All fields by their own name, which is unique: it is also the name of the flag."""
    leaves: dict[str, Any] = {}
    for name, value in to_json(config).items():
        leaves |= value if isinstance(value, dict) else {name: value}
    return leaves


def fields_that_differ(a: Config, b: Config) -> Iterator[tuple[str, Any, Any]]:
    """Names of fields with their two values, where they are not the same."""
    left, right = leaf_values(a), leaf_values(b)
    for name, value in left.items():
        if value != right[name]:
            yield name, value, right[name]


def default_run_dir(config: Config, stamp: str) -> pathlib.Path:
    """A folder name no other run has."""
    return pathlib.Path("runs") / f"{config.environment.game}-{config.learner.algorithm}-{stamp}"


def _build(cls: type[Any], stored: Mapping[str, Any], where: str) -> Any:
    hints = typing.get_type_hints(cls)
    if not isinstance(stored, Mapping):
        raise ValueError(f"{where} is not a JSON object")
    unknown, missing = set(stored) - set(hints), set(hints) - set(stored)
    if unknown or missing:
        names = ", ".join(sorted(unknown | missing))
        raise ValueError(f"{where}: fields {names} do not fit this version")
    values = {}
    for name, value in stored.items():
        if dataclasses.is_dataclass(hints[name]):
            values[name] = _build(hints[name], value, f"{where}.{name}")
        elif _fits(value, hints[name]):
            values[name] = value
        else:
            raise ValueError(f"{where}: {name}={value!r} is not of the right kind")
    return cls(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON is of a field's type."""
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)
