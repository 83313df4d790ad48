"""Episodes of known content, and writers and samplers of items made of them."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import reverb

from actors.n_step import NStepStream, Row, item_rows
from actors.observation import FRAME_SHAPE, STACK_SIZE
from reverb_server import sampler, tables, writer

NUM_ACTIONS = 18


def layout_of(n_step: int, transitions: int = 1) -> tables.ItemLayout:
    """Items of real frames."""
    rows = item_rows(n_step, transitions)
    return tables.ItemLayout(rows, transitions, FRAME_SHAPE, STACK_SIZE)


SINGLE = layout_of(1)  # items of one transition: the table counts steps


class Episode(NamedTuple):
    """What was played, one row per step, and the frame it ended with."""

    rows: list[Row]
    final_frame: np.ndarray
    terminated: bool


def random_episode(rng: np.random.Generator, num_steps: int, terminated: bool) -> Episode:
    """Noise in every frame, and a lost life now and then: discount 0 without an end."""

    def row(last: bool) -> Row:
        lost = rng.random() < 0.2 or (last and terminated)
        return Row(
            frame=rng.integers(1, 256, FRAME_SHAPE, np.uint8),
            action=int(rng.integers(NUM_ACTIONS)),
            reward=float(rng.integers(-1, 2)),
            discount=0.0 if lost else 0.99,
            epsilon=float(np.float32(rng.random())),
            greedy=int(rng.integers(NUM_ACTIONS)),
        )

    rows = [row(last=t == num_steps - 1) for t in range(num_steps)]
    return Episode(rows, rng.integers(1, 256, FRAME_SHAPE, np.uint8), terminated)


def make_streams(num_streams: int, lengths: list[int], seed: int = 0) -> list[list[Episode]]:
    """Episodes of these lengths in each stream; every second one ends in a termination."""
    rng = np.random.default_rng(seed)
    return [
        [random_episode(rng, length, terminated=bool(i % 2)) for i, length in enumerate(lengths)]
        for _ in range(num_streams)
    ]


def play(
    target: writer.ExperienceWriter, streams: list[list[Episode]], n: int, transitions: int = 1
) -> int:
    """Writes the streams step by step, taking turns as an actor does; returns rows appended."""
    rows_appended = 0

    def one(index: int, episodes: list[Episode]) -> Iterator[None]:
        nonlocal rows_appended
        stream = NStepStream(n, transitions)
        for episode in episodes:
            for row in episode.rows:
                increment = stream.step(row)
                target.write(index, *increment)
                rows_appended += len(increment.rows)
                yield
            increment = stream.end(episode.final_frame, terminated=episode.terminated)
            target.write(index, *increment)
            rows_appended += len(increment.rows)

    for _ in itertools.zip_longest(*(one(i, episodes) for i, episodes in enumerate(streams))):
        pass
    return rows_appended


def open_writer(
    client: reverb.Client, *, n_step: int = 1, transitions: int = 1, **options: Any
) -> writer.ExperienceWriter:
    """A writer of one stream that nobody stops, unless told otherwise."""
    defaults: dict[str, Any] = {"num_streams": 1, "should_stop": lambda: False}
    return writer.ExperienceWriter(client, layout_of(n_step, transitions), **defaults | options)


def open_sampler(
    server: reverb.Server, *, n_step: int = 1, transitions: int = 1, **options: Any
) -> sampler.BatchSampler:
    """A sampler of small uniform batches, unless told otherwise."""
    defaults: dict[str, Any] = {
        "batch_size": 8,
        "prioritization": None,
        "num_actions": NUM_ACTIONS,
    }
    layout = layout_of(n_step, transitions)
    return sampler.BatchSampler(f"localhost:{server.port}", layout, **defaults | options)
