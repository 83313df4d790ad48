"""What a sampled batch costs the host, what of it is one thread's alone, and what a core adds.

The learner's own sampling path, from a real server to batches on the device, with nothing done to
them. It is measured in processes of its own, which have one core or two for client and server.

- A batch's core time is that of client and server together. It is held against one copy of the
  batch's bytes, from memory to memory, neither of them in a cache, in turns.
- What only one thread can do at a time is what Python holds its lock for. The lock is not held
  while bytes are moved, so the same path with frames of a single pixel leaves little else: the time
  of the Python threads there is taken as theirs alone. It is at least what it should be.

`python -m benchmarks.sampling_speed` prints the figures.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from actors.observation import OBSERVATION_SHAPE
from launch import build
from launch.config import PRESETS, Config
from launch.engines.isolate import move_to_own_network
from launch.nodes.learner import make_streams
from launch.profile.recorded_play import increments, record_rows
from launch.profile.replay_process import ReplayProcess, replay_process
from launch.profile.serial_sampling import serial_core_ms
from launch.profile.stages import writing
from launch.run_dir import RunDir
from learner.prefetch import Prefetcher

_FILL_STEPS = 5000
_ROUND_SECONDS, _ROUNDS = 1.0, 6
_COPIED_BATCHES, _COPIES = 40, 200  # more than caches hold
_REPEATS = 2  # one core, two cores, and again
_CHILD_SECONDS = 300.0
_GET_SECONDS = 30.0


class SamplingCosts(NamedTuple):
    """Ratios, and the core-milliseconds of a batch behind them."""

    sample_over_copy: float
    sample_serial_share: float
    sample_scaling_1_to_2_cores: float
    client_core_ms: float
    server_core_ms: float
    copy_core_ms: float
    serial_core_ms: float
    batches_per_second_1_core: float
    batches_per_second_2_cores: float


class _Measured(NamedTuple):
    """By one process, on the cores it has."""

    client_core_ms: float
    server_core_ms: float
    copy_core_ms: float
    serial_core_ms: float
    batches_per_second: float

    @property
    def core_ms(self) -> float:
        return self.client_core_ms + self.server_core_ms


def measure_sampling(config: Config) -> SamplingCosts:
    """All of it; takes about two minutes."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise RuntimeError("two cores are needed to see what the second one adds")
    rounds = [
        [_measure_on(config, set(cores[:count])) for count in (1, 2)] for _ in range(_REPEATS)
    ]
    ones, twos = zip(*rounds, strict=True)
    best = min(twos, key=lambda found: found.core_ms / found.copy_core_ms)
    per_second = [max(found.batches_per_second for found in each) for each in (ones, twos)]
    return SamplingCosts(
        sample_over_copy=best.core_ms / best.copy_core_ms,
        sample_serial_share=best.serial_core_ms / best.core_ms,
        sample_scaling_1_to_2_cores=per_second[1] / per_second[0],
        client_core_ms=best.client_core_ms,
        server_core_ms=best.server_core_ms,
        copy_core_ms=best.copy_core_ms,
        serial_core_ms=best.serial_core_ms,
        batches_per_second_1_core=per_second[0],
        batches_per_second_2_cores=per_second[1],
    )


def _measure_on(config: Config, cores: set[int]) -> _Measured:
    """In a process that has only these cores, and so has its server."""
    with tempfile.TemporaryDirectory() as folder:
        RunDir(pathlib.Path(folder)).create(config)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.sampling_speed", folder],
            preexec_fn=functools.partial(os.sched_setaffinity, 0, cores),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_CHILD_SECONDS,
            check=True,
        )
    return _Measured(**json.loads(done.stdout.splitlines()[-1]))


def _measure_here(config: Config) -> _Measured:
    build.own_backend().prepare_process()
    copy = _make_copy(config)
    serial_ms = serial_core_ms(config)
    with replay_process(config) as server:
        with writing(config, server.address) as write:
            play = increments(config, record_rows(config))
            for _ in range(_FILL_STEPS):
                write(next(play))
        with Prefetcher(*make_streams(config, server.address)) as prefetcher:

            def take() -> None:
                batch = prefetcher.get(_GET_SECONDS)
                assert batch is not None  # the table is full and never holds back
                jax.block_until_ready((batch.transition, batch.weights))

            for _ in range(20):
                take()
            rounds, copies = [], []
            for _ in range(_ROUNDS):
                rounds.append(_one_round(config, take, server))
                while prefetcher.ready < 2:  # then its threads wait, and leave the core to the copy
                    time.sleep(0.01)
                copies.append(_copy_core_ms(copy))
    client, in_server, _ = min(rounds, key=lambda costs: costs[0] + costs[1])
    return _Measured(client, in_server, min(copies), serial_ms, max(r[2] for r in rounds))


def _one_round(
    config: Config, take: Callable[[], None], server: ReplayProcess
) -> tuple[float, float, float]:
    """Core-milliseconds of client and server for a batch, and batches a second."""
    began, own, its, batches = time.perf_counter(), time.process_time(), server.core_seconds(), 0
    while time.perf_counter() - began < _ROUND_SECONDS:
        take()
        batches += config.learner.updates_per_dispatch
    own, its = time.process_time() - own, server.core_seconds() - its
    seconds = time.perf_counter() - began
    return 1e3 * own / batches, 1e3 * its / batches, batches / seconds


def _make_copy(config: Config) -> Callable[[int], None]:
    """Copies the bytes of a batch: both stacks of its transitions."""
    shape = (_COPIED_BATCHES, 2, config.learner.batch_size, *OBSERVATION_SHAPE)
    source = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    target = np.zeros_like(source)
    return lambda i: np.copyto(target[i % _COPIED_BATCHES], source[i % _COPIED_BATCHES])


def _copy_core_ms(copy: Callable[[int], None]) -> float:
    began = time.thread_time()
    for i in range(_COPIES):
        copy(i)
    return 1e3 * (time.thread_time() - began) / _COPIES


def main(argv: list[str]) -> None:
    """Without arguments all figures; with a run directory those of this process, as JSON."""
    if argv:
        config = RunDir(pathlib.Path(argv[0])).load_config()
        print(json.dumps(_measure_here(config)._asdict()))
        return
    for name, value in measure_sampling(PRESETS["paper"])._asdict().items():
        print(f"{name:32s}{value:10.4g}")


if __name__ == "__main__":
    move_to_own_network()
    main(sys.argv[1:])
