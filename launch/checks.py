"""Refuses configs that cannot work, before anything is started or written."""

import pathlib

import psutil

from actors.games import UnknownGameError, check_game
from launch.config import Config
from launch.errors import InputError
from reverb_server.port import PortInUseError, check_port_free
from reverb_server.rate_limit import RateLimit, RateLimitError, make_rate_limit

IN_FLIGHT_BATCHES = 2
# Two compressed frames' worth of a busy game, with Reverb's own records; Pong needs about half.
_REPLAY_BYTES_PER_STEP = 4096


def check_config(config: Config) -> None:
    """Raises InputError, in one line, for the first thing that cannot work."""
    _check_names(config)
    _check_numbers(config)
    replay_limit(config)
    _check_memory(config)


def replay_limit(config: Config) -> RateLimit:
    """The rate limit of the replay table; refuses settings that can deadlock."""
    try:
        return make_rate_limit(
            samples_per_insert=config.replay.samples_per_insert,
            warmup_steps=config.replay.warmup_steps,
            batch_size=config.learner.batch_size,
            in_flight_batches=IN_FLIGHT_BATCHES,
            error_buffer=config.replay.error_buffer,
        )
    except RateLimitError as error:
        raise InputError(str(error)) from None


def replay_bytes_estimate(config: Config) -> int:
    """Resident bytes of a full replay, on the safe side."""
    return config.replay.replay_capacity_steps * _REPLAY_BYTES_PER_STEP


def check_new_run_dir(run_dir: pathlib.Path) -> None:
    """A new run needs a folder of its own."""
    if (run_dir / "config.json").exists():
        raise InputError(
            f"run directory '{run_dir}' holds a run already; continue it with --resume, "
            "or choose another with --run-dir"
        )
    if run_dir.exists() and (not run_dir.is_dir() or any(run_dir.iterdir())):
        raise InputError(
            f"run directory '{run_dir}' exists and is not an empty folder; choose another"
        )


def check_port(port: int) -> None:
    """A fixed port must be free."""
    try:
        check_port_free(port)
    except PortInUseError as error:
        raise InputError(str(error)) from None


def _check_names(config: Config) -> None:
    try:
        check_game(config.environment.game)
    except UnknownGameError as error:
        raise InputError(str(error)) from None


def _check_numbers(config: Config) -> None:
    env, actor, replay = config.environment, config.actor, config.replay
    learner, evaluator = config.learner, config.evaluator
    at_least_one = {
        "frames": config.frames,
        "actors": actor.actors,
        "envs_per_actor": actor.envs_per_actor,
        "n_step": learner.n_step,
        "batch_size": learner.batch_size,
        "warmup_steps": replay.warmup_steps,
        "action_repeat": env.action_repeat,
        "max_episode_frames": env.max_episode_frames,
        "target_period_updates": learner.target_period_updates,
        "publish_period_updates": learner.publish_period_updates,
        "keep_checkpoints": learner.keep_checkpoints,
        "eval_period_frames": evaluator.eval_period_frames,
        "eval_episodes": evaluator.eval_episodes,
    }
    for name, value in at_least_one.items():
        if value < 1:
            raise InputError(f"{name}={value} must be at least 1")
    if env.max_noops < 0:
        raise InputError(f"max_noops={env.max_noops} must not be negative")
    if config.epsilon_decay_frames < 0:
        raise InputError(f"epsilon_decay_frames={config.epsilon_decay_frames} must not be negative")
    positive = {
        "samples_per_insert": replay.samples_per_insert,
        "learning_rate": config.learning_rate,
        "optimizer_epsilon": learner.optimizer_epsilon,
        "report_seconds": config.report_seconds,
        "checkpoint_seconds": learner.checkpoint_seconds,
        "replay_checkpoint_seconds": replay.replay_checkpoint_seconds,
        "stale_params_seconds": actor.stale_params_seconds,
        "max_grad_norm": 1.0 if learner.max_grad_norm is None else learner.max_grad_norm,
    }
    for name, number in positive.items():
        if not number > 0:
            raise InputError(f"{name}={number} must be greater than 0")
    within_one = {
        "final_epsilon": actor.final_epsilon,
        "eval_epsilon": evaluator.eval_epsilon,
        "gamma": learner.gamma,
        "priority_alpha": replay.priority_alpha,
        "priority_beta": replay.priority_beta,
    }
    for name, number in within_one.items():
        if not 0.0 <= number <= 1.0:
            raise InputError(f"{name}={number} must lie between 0 and 1")
    if not 0 <= replay.port <= 65535:
        raise InputError(f"port={replay.port} must lie between 0 and 65535")
    if not 0 <= config.seed < 2**31:
        raise InputError(f"seed={config.seed} must lie between 0 and 2147483647")
    if replay.replay_capacity_steps < replay.warmup_steps:
        raise InputError(
            f"replay_capacity_steps={replay.replay_capacity_steps} is less than "
            f"warmup_steps={replay.warmup_steps}: learning would never start"
        )
    if config.total_steps <= replay.warmup_steps:
        raise InputError(
            f"frames={config.frames} is {config.total_steps} agent steps, no more than "
            f"warmup_steps={replay.warmup_steps}: nothing would be learned"
        )


def _check_memory(config: Config) -> None:
    needed, available = replay_bytes_estimate(config), psutil.virtual_memory().available
    if needed > available:
        raise InputError(
            f"replay_capacity_steps={config.replay.replay_capacity_steps} needs about "
            f"{needed / 2**30:.1f} GiB but {available / 2**30:.1f} GiB are free; "
            "lower --replay-capacity-steps"
        )
