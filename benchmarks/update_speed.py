"""The bare update on data that is already on the device: ours, and the naive one beside it."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax

from benchmarks.naive_update import NaiveUpdate
from launch import build
from launch.config import Config
from launch.names import find_loss
from launch.profile.resident_batches import resident_batches
from launch.profile.timing import Cost, compare
from learner.backend import PLAIN
from learner.losses import BEHAVIOR_LOSSES
from learner.optimizers import make_optimizer


def against_naive(config: Config, *, calls: int = 5, rounds: int = 20) -> dict[str, Cost]:
    """`ours` and `naive`, taking turns, one update a call."""
    config = one_per_dispatch(config)
    candidates = {"ours": make_bare_update(config), "naive": make_naive_update(config)}
    return compare(candidates, calls=calls, rounds=rounds)


def make_naive(config: Config) -> NaiveUpdate:
    """The yardstick of a config."""
    learner = config.learner
    return NaiveUpdate(
        build.network_of(config, PLAIN),
        find_loss(learner.algorithm),
        make_optimizer(build.optimizer_options(config)),
        target_period_updates=learner.target_period_updates,
        behavior_loss=BEHAVIOR_LOSSES[learner.behavior_target],
    )


def one_per_dispatch(config: Config) -> Config:
    """The same run with a call for every update."""
    return dataclasses.replace(
        config, learner=dataclasses.replace(config.learner, updates_per_dispatch=1)
    )


def make_bare_update(config: Config) -> Callable[[], object]:
    """A call of the learner's own jitted update, on resident data."""
    state, update = build.make_learner(config)
    return _chain(state, lambda *args: update(*args)[0], resident_batches(config))


def make_naive_update(config: Config) -> Callable[[], object]:
    """A call of the naive update, on resident data and from the same fresh state."""
    state, _ = build.make_learner(config)
    return _chain(state, make_naive(config), resident_batches(config))


def _chain(state: Any, step: Callable[..., Any], batches: list[Any]) -> Callable[[], object]:
    """A call that makes one update of one running state, and waits for it."""
    held = {"state": state, "calls": 0}

    def call() -> None:
        batch, weights = batches[held["calls"] % len(batches)]
        held["calls"] += 1
        held["state"] = jax.block_until_ready(step(held["state"], batch, weights))

    return call
