"""The share of the learner's time that publishing takes, by the number of actors subscribed."""

import contextlib
import functools
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Event

import jax
import numpy as np
import reverb

from benchmarks.background import CONTEXT, in_background
from launch import build
from launch.config import Config
from launch.profile.replay_process import replay_process
from launch.profile.resident_batches import resident_batches
from learner import acting
from reverb_server.params import ParamsPublisher, ParamsPuller
from reverb_server.params_check import Counters, ParamsLimits

_START_SECONDS = 120.0
_UPDATES = 300


def publish_fraction(config: Config, *, actors: int) -> float:
    """Share of the learner's loop spent handing parameters over, at the config's period."""
    with replay_process(config) as server:
        publisher = ParamsPublisher(reverb.Client(server.address))
        state, update = build.make_learner(config)
        flatten = jax.jit(acting.flatten_acting)
        batches = resident_batches(config)

        def publish(version: int) -> None:
            # As the learner's node does it: a copy on the device, sent by a thread.
            flat = flatten(state.params)
            publisher.publish(lambda: np.asarray(flat), version=version, steps=0, finished=False)

        publish(0)
        state, _ = jax.block_until_ready(update(state, *batches[0]))
        num_values = acting.num_acting_values(build.network_of(config))
        with _subscribed(server.address, actors, num_values):
            spent, began = 0.0, time.perf_counter()
            for number in range(1, _UPDATES + 1):
                state, _ = update(state, *batches[number % len(batches)])
                if number % config.learner.publish_period_updates == 0:
                    # What is left to compute is not the cost of publishing.
                    jax.block_until_ready(state)
                    before = time.perf_counter()
                    publish(number)
                    spent += time.perf_counter() - before
            jax.block_until_ready(state)
            total = time.perf_counter() - began
        publisher.close()
    return spent / total


@contextlib.contextmanager
def _subscribed(address: str, actors: int, num_values: int) -> Iterator[None]:
    """Pullers in a process of their own, all with a first version before the clock starts."""
    ready = CONTEXT.Event()
    with in_background(functools.partial(_pull, address, actors, num_values, ready)):
        if not ready.wait(_START_SECONDS):
            raise TimeoutError(f"{actors} pullers had no parameters in {_START_SECONDS:.0f} s")
        yield


def _pull(address: str, actors: int, num_values: int, ready: Event, stop: Event) -> None:
    pullers = [
        ParamsPuller(
            reverb.Client(address), limits=ParamsLimits(num_values, Counters(10**9, 10**9))
        )
        for _ in range(actors)
    ]
    for puller in pullers:
        puller.wait_first(_START_SECONDS)
    ready.set()
    stop.wait()
    for puller in pullers:
        puller.close()
