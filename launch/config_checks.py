"""Refuses configs that cannot work, before anything is started or written."""

import math
import pathlib

import psutil

from actors.games import UnknownGameError, check_game
from launch import config as config_lib
from launch.bounds import MAX_SEED, check_at_least_one, check_positive, check_within
from launch.config import Config
from launch.errors import InputError
from reverb_server.port import PortInUseError, check_port_free
from reverb_server.rate_limit import RateLimit, RateLimitError, make_rate_limit

IN_FLIGHT_BATCHES = 2
# Two compressed frames' worth of a busy game, with Reverb's own records; Pong needs about half.
_REPLAY_BYTES_PER_STEP = 4096

_AT_LEAST_ONE = (
    "frames",
    "actors",
    "envs_per_actor",
    "n_step",
    "batch_size",
    "updates_per_dispatch",
    "warmup_steps",
    "action_repeat",
    "max_episode_frames",
    "target_period_updates",
    "publish_period_updates",
    "keep_checkpoints",
    "eval_period_frames",
    "eval_episodes",
)
_POSITIVE = (
    "samples_per_insert",
    "error_buffer",
    "learning_rate",
    "final_learning_rate",
    "optimizer_epsilon",
    "max_grad_norm",
    "report_seconds",
    "checkpoint_seconds",
    "replay_checkpoint_seconds",
    "stale_params_seconds",
)
# Far beyond what makes sense; without a bound they would fill the memory or never end a window.
_AT_MOST = {
    "actors": 10_000,
    "envs_per_actor": 1_000,
    "n_step": 1_000,
    "batch_size": 100_000,
    "updates_per_dispatch": 10_000,
    "action_repeat": 1_000,
    "eval_episodes": 1_000,
}
_FINITE = ("learning_rate", "final_learning_rate", "optimizer_epsilon", "max_grad_norm")
_WITHIN = {
    "final_epsilon": (0, 1),
    "eval_epsilon": (0, 1),
    "gamma": (0, 1),
    "priority_alpha": (0, 1),
    "priority_beta": (0, 1),
    "port": (0, 65535),
    "seed": (0, MAX_SEED),
    "max_noops": (0, 1000),
    "epsilon_decay_frames": (0, 2**62),
}


def check_config(config: Config) -> None:
    """Raises InputError, in one line, for the first thing that cannot work."""
    _check_names(config)
    _check_numbers(config)
    _check_warmup(config)
    replay_limit(config)


def replay_limit(config: Config) -> RateLimit:
    """The rate limit of the replay table; refuses settings that can deadlock."""
    try:
        return make_rate_limit(
            samples_per_insert=config.replay.samples_per_insert,
            warmup_steps=config.replay.warmup_steps,
            batch_size=config.sampled_items,
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


def check_machine(config: Config) -> None:
    """This host, which is to hold replay, must have the memory and the port for it."""
    _check_memory(config)
    if config.replay.port:
        try:
            check_port_free(config.replay.port)
        except PortInUseError as error:
            raise InputError(str(error)) from None


def _check_memory(config: Config) -> None:
    needed, available = replay_bytes_estimate(config), psutil.virtual_memory().available
    if needed > available:
        raise InputError(
            f"replay_capacity_steps={config.replay.replay_capacity_steps} needs about "
            f"{needed / 2**30:.1f} GiB but {available / 2**30:.1f} GiB are free; "
            "lower --replay-capacity-steps"
        )


def _check_names(config: Config) -> None:
    try:
        check_game(config.environment.game)
    except UnknownGameError as error:
        raise InputError(str(error)) from None


def _check_numbers(config: Config) -> None:
    values = config_lib.leaf_values(config) | {
        "learning_rate": config.learning_rate,
        "epsilon_decay_frames": config.epsilon_decay_frames,
    }
    check_at_least_one(**{name: values[name] for name in _AT_LEAST_ONE})
    check_positive(**{name: values[name] for name in _POSITIVE})
    for name, most in _AT_MOST.items():
        if values[name] > most:
            raise InputError(f"{name}={values[name]} must be at most {most}")
    for name in _FINITE:
        if values[name] is not None and math.isinf(values[name]):
            raise InputError(f"{name}={values[name]} must be finite")
    for name, (low, high) in _WITHIN.items():
        check_within(low, high, **{name: values[name]})


def _check_warmup(config: Config) -> None:
    warmup, capacity = config.replay.warmup_steps, config.replay.replay_capacity_steps
    if capacity < warmup:
        raise InputError(
            f"replay_capacity_steps={capacity} is less than warmup_steps={warmup}: "
            "learning would never start"
        )
    if config.total_steps <= warmup:
        raise InputError(
            f"frames={config.frames} is {config.total_steps} agent steps, no more than "
            f"warmup_steps={warmup}: nothing would be learned"
        )
