"""The system as one would first write it, from the same parts: the yardstick of a whole run.

A Reverb server, actors with one game each, and a learner, each a process. An actor writes every
transition as an item of its own, both stacks whole; the learner takes batches from Reverb's dataset
and makes one naive update a call (`benchmarks/naive_update.py`). The rate limit, the batch, the
network, the algorithm and the period of publishing are the config's. Nothing is slow on purpose:
inference and update are jitted, batches are prefetched, and actors have one thread each.
"""

import collections
import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import portpicker
import psutil
import reverb
import tensorflow as tf
from jax.flatten_util import ravel_pytree

from actors.environment import FIRST, LAST
from actors.observation import OBSERVATION_SHAPE
from benchmarks.background import CONTEXT
from benchmarks.update_speed import make_naive
from launch import build
from launch.config import Config
from launch.replay import replay_limit
from launch.supervise.node_process import die_with_parent
from launch.supervise.nodes_on_host import node_environment
from learner.backend import PLAIN
from learner.transitions import Transition

ACTORS = 2  # the best number on two cores
_EPSILON = 0.1
_PULL_STEPS = 100  # between two looks at the parameters
_START_SECONDS = 300.0
_STOP_SECONDS = 20.0
_REPLAY, _PARAMS = "replay", "params"


class NaiveSystem(NamedTuple):
    """A running system, held still unless asked for."""

    processes: list[psutil.Process]
    updates: Any  # a shared counter

    def updates_in(self, seconds: float) -> int:
        """Lets it run for a while; how many updates it made."""
        before = self.updates.value
        for process in self.processes:
            process.resume()
        time.sleep(seconds)
        for process in self.processes:
            process.suspend()
        deadline = time.monotonic() + _STOP_SECONDS
        while any(process.status() != psutil.STATUS_STOPPED for process in self.processes):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the naive system went on for {_STOP_SECONDS:.0f} s")
            time.sleep(0.001)
        return self.updates.value - before


@contextlib.contextmanager
def naive_system(config: Config, *, actors: int = ACTORS) -> Iterator[NaiveSystem]:
    """Starts the system, waits until it learns, and holds it still."""
    address = f"localhost:{portpicker.pick_unused_port()}"
    updates = CONTEXT.Value("q", 0)
    jobs: list[Callable[[], None]] = [
        functools.partial(_serve, config, address),
        functools.partial(_learn, config, address, updates),
        *(functools.partial(_act, config, address, seed) for seed in range(actors)),
    ]
    started = [CONTEXT.Process(target=_run, args=(os.getpid(), job), daemon=True) for job in jobs]
    for process in started:
        process.start()
    system = NaiveSystem([psutil.Process(process.pid) for process in started], updates)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while updates.value == 0:
            if time.monotonic() > deadline or not all(process.is_alive() for process in started):
                raise RuntimeError("the naive system made no update")
            time.sleep(0.2)
        system.updates_in(0.0)
        yield system
    finally:
        # They stand still, and have nothing to save.
        for process in started:
            process.kill()
            process.join(_STOP_SECONDS)


def _run(parent: int, job: Callable[[], None]) -> None:
    die_with_parent(parent)()  # it may stand still then, and would for ever
    job()


def _signature(config: Config) -> dict[str, tf.TensorSpec]:
    stack, n_step = tf.TensorSpec(OBSERVATION_SHAPE, tf.uint8), (config.learner.n_step,)
    integer, number = tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.float32)
    steps = tf.TensorSpec(n_step, tf.float32)
    return Transition(
        o_tm1=stack,
        o_t=stack,
        a_tm1=integer,
        r_t=steps,
        discount_t=steps,
        epsilon=number,
        greedy_tm1=integer,
    )._asdict()


def _serve(config: Config, address: str) -> None:
    limit = replay_limit(config)
    replay = reverb.Table(
        _REPLAY,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        max_size=config.replay.replay_capacity_steps,
        rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
            limit.samples_per_insert, limit.warmup_steps, limit.error_buffer
        ),
        signature=_signature(config),
    )
    params = reverb.Table(
        _PARAMS,
        sampler=reverb.selectors.Lifo(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
    )
    server = reverb.Server([replay, params], port=int(address.split(":")[1]))
    server.wait()


def _learn(config: Config, address: str, updates: Any) -> None:
    client = reverb.Client(address)
    state, _ = build.make_learner(config, PLAIN)
    update = make_naive(config)
    size = config.learner.batch_size
    weights = jnp.ones(size)

    def publish() -> None:
        client.insert(np.asarray(ravel_pytree(state.params)[0]), {_PARAMS: 1.0})

    publish()
    batches = reverb.TrajectoryDataset.from_table_signature(
        address, _REPLAY, max_in_flight_samples_per_worker=2 * size
    )
    for sample in batches.batch(size, drop_remainder=True).prefetch(2).as_numpy_iterator():
        state = update(state, Transition(**sample.data), weights)
        updates.value += 1
        if updates.value % config.learner.publish_period_updates == 0:
            publish()


def _act(config: Config, address: str, seed: int) -> None:
    # Before JAX computes anything: as our own actors, one thread and no accelerator.
    os.environ.update(node_environment("actor"))
    client = reverb.Client(address)
    network = build.network_of(config, PLAIN)
    _, unravel = ravel_pytree(network.init(jax.random.PRNGKey(seed)))
    greedy_action = jax.jit(
        lambda params, stack: network.advantage(params, stack[None])[0].argmax()
    )
    params: Any = None
    games = build.make_environment(config, num_envs=1, seed=seed, training=True)
    rng = np.random.default_rng(seed)
    stack = games.reset().observation.stack[0]
    window: collections.deque[Transition] = collections.deque()
    steps = 0
    with client.trajectory_writer(num_keep_alive_refs=1) as writer:
        while True:
            if steps % _PULL_STEPS == 0:
                sample = next(iter(client.sample(_PARAMS, emit_timesteps=False)))
                params = unravel(sample.data[0][0])
            steps += 1
            greedy = int(greedy_action(params, stack))
            explores = rng.random() < _EPSILON
            action = int(rng.integers(games.num_actions)) if explores else greedy
            timestep = games.step(np.array([action]))
            if timestep.step_type[0] != FIRST:
                window.append(_one_step(config, stack, action, greedy, timestep))
            stack = timestep.observation.stack[0]
            ended = timestep.step_type[0] == LAST
            while window and (ended or len(window) == config.learner.n_step):
                _write(writer, _n_step(config, window, stack))
                window.popleft()


def _one_step(
    config: Config, stack: np.ndarray, action: int, greedy: int, timestep: Any
) -> Transition:
    return Transition(
        o_tm1=stack,
        o_t=timestep.observation.stack[0],
        a_tm1=np.int32(action),
        r_t=np.float32(timestep.reward[0]),
        discount_t=np.float32(config.learner.gamma * timestep.discount[0]),
        epsilon=np.float32(_EPSILON),
        greedy_tm1=np.int32(greedy),
    )


def _n_step(config: Config, window: collections.deque[Transition], stack: np.ndarray) -> Transition:
    """The first step of the window, with all its rewards; padded at an episode's end."""
    padding = config.learner.n_step - len(window)
    rewards = [step.r_t for step in window] + [0.0] * padding
    discounts = [step.discount_t for step in window] + [1.0] * padding
    return window[0]._replace(
        o_t=stack,
        r_t=np.array(rewards, np.float32),
        discount_t=np.array(discounts, np.float32),
    )


def _write(writer: reverb.TrajectoryWriter, transition: Transition) -> None:
    writer.append(transition._asdict())
    item = {name: column[-1] for name, column in writer.history.items()}
    writer.create_item(_REPLAY, 1.0, item)
    writer.flush(block_until_num_items=20)
