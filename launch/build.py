"""A config becomes components, in the order in which a frame meets them.

What Reverb carries between them is built by the nodes: playing and scoring need no Reverb.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import jax
import numpy as np

from actors.environment import AtariBatch
from actors.evaluate import EpisodeScores, play_episodes, play_frames
from actors.exploration import EpsilonFn, LadderEpsilon, LinearEpsilon
from actors.loop import Actor, ActorEdges
from actors.observation import STACK_SIZE
from actors.resume import RecordedBatch
from actors.screen import ColorTwin
from launch.config import Config, EnvironmentConfig
from launch.errors import InputError
from launch.machine.device import JAX_PLATFORMS, Device, DeviceName
from launch.names import find_architecture, find_loss
from launch.seeds import seed_for
from learner.backend import Backend, backend_for
from learner.cutting import Cut
from learner.loop import Periods
from learner.losses import BEHAVIOR_LOSSES
from learner.networks import Network, make_network
from learner.optimizers import OptimizerOptions, falling_rate, make_optimizer
from learner.precision import with_precision
from learner.update import LearnerState, Update, init_state, make_update, repeat_update

Games = TypeVar("Games", bound=AtariBatch)


def make_environment(config: Config, *, num_envs: int, seed: int, training: bool) -> AtariBatch:
    """The game; lost lives end the discount in training only."""
    return _make_games(AtariBatch, config, num_envs=num_envs, seed=seed, training=training)


def make_recorded_environment(
    config: Config, *, num_envs: int, seed: int, training: bool
) -> RecordedBatch:
    """The same, for a run that must be able to put its games back where they were."""
    return _make_games(RecordedBatch, config, num_envs=num_envs, seed=seed, training=training)


def _make_games(
    kind: type[Games], config: Config, *, num_envs: int, seed: int, training: bool
) -> Games:
    return kind(
        num_envs=num_envs,
        seed=seed,
        life_loss_ends_discount=training,
        **_game_options(config.environment),
    )


def make_color_twin(config: Config, *, seed: int) -> ColorTwin:
    """The game of that seed in color."""
    return ColorTwin(seed=seed, **_game_options(config.environment))


def _game_options(environment: EnvironmentConfig) -> dict[str, Any]:
    return {
        "game": environment.game,
        "full_action_set": environment.full_action_set,
        "action_repeat": environment.action_repeat,
        "max_episode_frames": environment.max_episode_frames,
        "max_noops": environment.max_noops,
        "min_noops": environment.min_noops,
        "sticky_actions": environment.sticky_actions,
    }


@functools.cache
def action_names(game: str, full_action_set: bool) -> tuple[str, ...]:
    """What the game's actions are called, in the order of their numbers; the emulator knows."""
    options = EnvironmentConfig(game=game, full_action_set=full_action_set)
    games = make_environment(Config(environment=options), num_envs=1, seed=0, training=False)
    try:
        return games.action_names
    finally:
        games.close()


def num_actions(game: str, full_action_set: bool) -> int:
    """Outputs of an advantage head: the actions that the game has, or all 18."""
    return len(action_names(game, full_action_set))


def use_device(asked: DeviceName) -> Device:
    """Makes this process compute on what was asked for, before JAX has computed anything in it."""
    if asked in JAX_PLATFORMS:
        jax.config.update("jax_platforms", JAX_PLATFORMS[asked])
    try:
        found = jax.devices()[0]
    except RuntimeError as error:
        raise InputError(f"device={asked}: JAX does not start: {error}") from None
    if asked not in ("auto", found.platform):
        raise InputError(f"device={asked}, but JAX computes on {found.platform} in this process")
    return Device(found.platform, found.device_kind)


def prepare_learner_process(config: Config) -> Device:
    """To be called by a process before it updates; returns what it will compute on."""
    device = use_device(config.learner.device)
    own_backend().prepare_process()
    return device


def own_backend() -> Backend:
    """How this process computes, by the platform that JAX finds for it."""
    return backend_for(jax.default_backend())


def network_of(config: Config, backend: Backend | None = None) -> Network:
    """The network with the heads the algorithm needs, for this process's backend unless told."""
    backend = own_backend() if backend is None else backend
    loss = find_loss(config.learner.algorithm)
    return make_network(
        find_architecture(config.learner.network),
        num_actions(config.environment.game, config.environment.full_action_set),
        value_head=loss.value_head,
        behavior_head=loss.behavior_head,
        normalize=config.learner.normalize,
        layers=backend.layers,
    )


def empty_params(config: Config) -> Any:
    """Zeros of the shapes and types that the network's parameters have."""
    shapes = jax.eval_shape(network_of(config).init, jax.random.PRNGKey(0))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)


def make_epsilon(config: Config, actor: int) -> EpsilonFn:
    """The exploration of one actor."""
    if config.actor.exploration == "ladder":
        return LadderEpsilon(actor, config.actor.actors, config.actor.envs_per_actor)
    return LinearEpsilon(
        config.actor.final_epsilon,
        config.epsilon_decay_frames,
        start_frames=config.epsilon_start_frames,
    )


def num_evaluation_games(config: Config) -> int:
    """Games that an evaluation may play at once."""
    return config.evaluator.eval_episodes if config.evaluator.eval_frames is None else 1


def play_evaluation(
    config: Config,
    environment: AtariBatch,
    greedy_actions: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
    should_stop: Callable[[], bool] = lambda: False,
) -> EpisodeScores | None:
    """One evaluation, by episodes or by frames; None if it was stopped."""
    evaluator = config.evaluator
    if evaluator.eval_frames is not None:
        return play_frames(
            environment,
            greedy_actions,
            frames=evaluator.eval_frames,
            epsilon=evaluator.eval_epsilon,
            rng=rng,
            should_stop=should_stop,
        )
    return play_episodes(
        environment,
        greedy_actions,
        episodes=evaluator.eval_episodes,
        epsilon=evaluator.eval_epsilon,
        rng=rng,
        should_stop=should_stop,
    )


def make_actor(
    config: Config,
    index: int,
    environment: AtariBatch,
    edges: ActorEdges,
    seeds: np.random.SeedSequence,
    *,
    pipeline_depth: Literal[0, 1],
) -> Actor:
    """An actor with its exploration, windows and randomness."""
    return Actor(
        environment,
        edges,
        epsilon_fn=make_epsilon(config, index),
        n_step=config.learner.n_step,
        item_transitions=config.item_transitions,
        gamma=config.learner.gamma,
        rng=np.random.default_rng(seeds),
        pipeline_depth=pipeline_depth,
    )


def learning_rate(config: Config) -> float:
    """The learning rate given, or the paper's: lower with a value head, higher for one step."""
    if config.learner.learning_rate is not None:
        return config.learner.learning_rate
    if find_loss(config.learner.algorithm).value_head:
        return 1.5e-5
    return 2.5e-4 if config.learner.n_step == 1 else 5e-5


def make_learner(config: Config, backend: Backend | None = None) -> tuple[LearnerState, Update]:
    """A fresh learner state and the jitted update, on this process's backend unless told."""
    backend = own_backend() if backend is None else backend
    learner = config.learner
    network = network_of(config, backend)
    options = optimizer_options(config)
    update = make_update(
        network,
        find_loss(learner.algorithm),
        backend.make_step(options),
        target_period_updates=learner.target_period_updates,
        behavior_loss=BEHAVIOR_LOSSES[learner.behavior_target],
        online_mu=learner.bootstrap_mu == "online",
    )
    if learner.updates_per_dispatch > 1:
        update = repeat_update(update, learner.updates_per_dispatch, unroll=backend.unroll_updates)
    update = with_precision(update, learner.matmul_precision)
    key = jax.random.PRNGKey(int(seed_for(config, "learner").generate_state(1)[0]))
    # As one program: operation by operation it would be a hundred small ones to compile.
    fresh = jax.jit(functools.partial(init_state, network, make_optimizer(options)))
    return fresh(key), jax.jit(update, donate_argnames=("state",))


def make_cut(config: Config) -> Cut:
    """How sampled items become the batches of the learner's updates."""
    return Cut(
        n_step=config.learner.n_step,
        item_transitions=config.item_transitions,
        batch_size=config.learner.batch_size,
        stack_size=STACK_SIZE,
    )


def optimizer_options(config: Config) -> OptimizerOptions:
    """The optimizer, with the learning rate's schedule."""
    learner = config.learner
    return OptimizerOptions(
        learner.optimizer,
        learning_rate=falling_rate(
            learning_rate(config), learner.final_learning_rate, config.scheduled_updates
        ),
        epsilon=learner.optimizer_epsilon,
        max_grad_norm=learner.max_grad_norm,
    )


def learner_periods(config: Config, *, serial: bool = False) -> Periods:
    """How often the learner publishes, reports and saves, and when it is done."""
    per_version = config.learner.publish_period_updates * config.learner.batch_size
    closing_steps = 2 * int(per_version / config.replay.samples_per_insert)
    return Periods(
        total_steps=config.total_steps,
        warmup_steps=config.replay.warmup_steps,
        publish_updates=config.learner.publish_period_updates,
        updates_per_batch=config.learner.updates_per_dispatch,
        report_seconds=config.report_seconds,
        save_seconds=config.save_seconds(serial=serial),
        publish_between=not serial,
        # In one process asking costs nothing, and what depends on the clock is not asked.
        closing_steps=config.total_steps if serial else closing_steps,
    )
