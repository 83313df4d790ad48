"""What of sampling only one thread can do at a time: what Python holds its lock for.

The lock is not held while bytes are moved, so the learner's own path with frames of a single pixel
leaves little else: the time of a Python thread there is taken as its alone. It is at least that.
"""

import dataclasses
import time

import numpy as np
import reverb

from launch.config import Config
from launch.nodes.learner import BatchStream
from launch.nodes.tables import item_layout
from launch.profile.recorded_play import increments, record_rows
from reverb_server import tables
from reverb_server.rate_limit import RateLimit
from reverb_server.writer import ExperienceWriter

_FILL_STEPS = 5000
_ROUNDS, _CALLS = 6, 300


def serial_core_ms(config: Config) -> float:
    """What the Python threads take for a batch whose frames are single pixels."""
    layout = dataclasses.replace(item_layout(config), frame_shape=(1, 1))
    limit = RateLimit(config.replay.samples_per_insert, 1, 1e12)
    server = reverb.Server(
        tables.make_tables(
            layout=layout, capacity_steps=_FILL_STEPS, rate_limit=limit, prioritization=None
        )
    )
    address = f"localhost:{server.port}"
    pixel = np.zeros((1, 1), np.uint8)
    play = increments(config, record_rows(config, 100))
    with ExperienceWriter(
        reverb.Client(address), layout, num_streams=1, should_stop=lambda: False
    ) as writer:
        for _ in range(_FILL_STEPS):
            rows, items = next(play)
            writer.write(0, [row._replace(frame=pixel) for row in rows], items)
    stream = BatchStream(config, layout, address, np.random.SeedSequence(0))
    best = np.inf
    for _ in range(_ROUNDS):
        began = time.thread_time()
        for _ in range(_CALLS):
            stream()
        best = min(best, (time.thread_time() - began) / _CALLS)
    server.stop()
    return 1e3 * float(best) / config.learner.updates_per_dispatch
