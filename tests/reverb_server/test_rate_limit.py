"""The band around the ratio: what is refused, and that what is accepted never blocks both sides."""

import math
import threading
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
import reverb
from hypothesis import strategies as st

from actors.n_step import NStepStream, Row
from actors.observation import FRAME_SHAPE
from reverb_server import sampler, tables, writer
from reverb_server.client import read_counts
from reverb_server.rate_limit import RateLimit, RateLimitError, make_rate_limit
from tests.reverb_server.episodes import layout_of, open_sampler, open_writer

FRAME = np.zeros(FRAME_SHAPE, np.uint8)


def smallest_limit(**settings: Any) -> RateLimit:
    """The narrowest band that is accepted, found from the outside."""
    low, high = 0.0, make_rate_limit(**settings).error_buffer
    for _ in range(60):
        middle = (low + high) / 2
        try:
            make_rate_limit(**settings, error_buffer=middle)
            high = middle
        except RateLimitError:
            low = middle
    return make_rate_limit(**settings, error_buffer=high)


def test_the_default_band_is_wider_than_the_smallest() -> None:
    settings: dict[str, Any] = {
        "samples_per_insert": 8.0,
        "warmup_steps": 100,
        "batch_size": 32,
        "in_flight_batches": 2,
        "item_transitions": 1,
    }
    assert make_rate_limit(**settings) == RateLimit(8.0, 100, 4 * (3 * 32 + 8.0))
    assert smallest_limit(**settings).error_buffer == pytest.approx((3 * 32 + 8) / 2)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"error_buffer": 51.9}, "error_buffer=51.9 can deadlock.* at least 52"),
        ({"error_buffer": -1.0}, "error_buffer=-1"),
        ({"error_buffer": math.nan}, "error_buffer=nan"),
        ({"warmup_steps": 31}, "warmup_steps=31 is less than the 32 steps"),
        ({"samples_per_insert": 0.0}, "samples_per_insert=0"),
        ({"samples_per_insert": -8.0}, "samples_per_insert=-8"),
        ({"samples_per_insert": math.nan}, "samples_per_insert=nan"),
        ({"samples_per_insert": math.inf}, "samples_per_insert=inf"),
        # More samples per insert than fit in a batch: Reverb needs room for two inserts.
        ({"samples_per_insert": 500.0, "error_buffer": 400.0}, "at least 500"),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(
    settings: dict[str, Any], named: str
) -> None:
    sound: dict[str, Any] = {
        "samples_per_insert": 8.0,
        "warmup_steps": 100,
        "batch_size": 32,
        "in_flight_batches": 2,
        "item_transitions": 1,
    }
    with pytest.raises(RateLimitError, match=named):
        make_rate_limit(**sound | settings)


def insert(
    client: reverb.Client, num_items: int, transitions: int, done: list[Exception | None]
) -> None:
    """Plays one episode; a write that is held back for a minute is a deadlock."""
    row = Row(FRAME, action=0, reward=0.0, discount=1.0, epsilon=1.0, greedy=0)
    stream = NStepStream(1, transitions)
    inserted = 0
    try:
        with open_writer(client, transitions=transitions, timeout_seconds=60.0) as target:
            while inserted < num_items:
                increment = stream.step(row)
                target.write(0, *increment)
                inserted += len(increment.items)
        done.append(None)
    except Exception as error:
        done.append(error)


def draw_while(inserting: threading.Thread, source: sampler.BatchSampler, drawn: list[int]) -> None:
    """Counts the batches that come while somebody inserts."""
    num_batches = 0
    while inserting.is_alive():
        num_batches += source() is not None
    drawn.append(num_batches)


@hypothesis.given(
    samples_per_insert=st.sampled_from([0.25, 0.5, 1.0, 3.0, 8.0, 40.0]),
    batch_items=st.integers(1, 16),
    transitions=st.sampled_from([1, 2, 4]),
    streams=st.integers(1, 5),
    warmup=st.integers(0, 20),
)
@hypothesis.settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@hypothesis.example(samples_per_insert=40.0, batch_items=1, transitions=1, streams=1, warmup=0)
@hypothesis.example(samples_per_insert=8.0, batch_items=8, transitions=4, streams=8, warmup=0)
def test_with_the_smallest_accepted_band_both_sides_go_on_and_the_ratio_is_kept(
    make_tables: Callable[..., list[reverb.Table]],
    monkeypatch: pytest.MonkeyPatch,
    samples_per_insert: float,
    batch_items: int,
    transitions: int,
    streams: int,
    warmup: int,
) -> None:
    monkeypatch.setattr(writer, "_PENDING_STEPS", 1)
    monkeypatch.setattr(sampler, "_WAIT_SECONDS", 0.1)
    batch_size = batch_items * transitions
    limit = smallest_limit(
        samples_per_insert=samples_per_insert,
        warmup_steps=batch_size + warmup,
        batch_size=batch_size,
        in_flight_batches=streams,
        item_transitions=transitions,
    )
    server = reverb.Server(make_tables(transitions=transitions, rate_limit=limit))
    client = reverb.Client(f"localhost:{server.port}")
    layout = layout_of(1, transitions)
    num_steps = limit.warmup_steps + math.ceil(4 * limit.error_buffer / samples_per_insert)
    num_items = min(layout.items_for(num_steps), 400)
    done: list[Exception | None] = []
    inserting = threading.Thread(target=insert, args=(client, num_items, transitions, done))
    inserting.start()
    drawn: list[int] = []
    options = {"transitions": transitions, "batch_size": batch_items}
    drawing = [
        threading.Thread(
            target=draw_while, args=(inserting, open_sampler(server, **options), drawn)
        )
        for _ in range(streams)
    ]
    for thread in drawing:
        thread.start()
    for thread in (inserting, *drawing):
        thread.join()

    assert done == [None]
    table = read_counts(client, layout)
    # The warm-up is rounded up to whole items.
    warmup_steps = layout.steps_in(layout.items_for(limit.warmup_steps))
    off = (table.inserts - warmup_steps) * samples_per_insert - table.samples
    assert abs(off) <= limit.error_buffer
    assert table.samples > 0 and sum(drawn) > 0
    server.stop()


def test_the_table_is_made_with_the_limit_given(
    make_tables: Callable[..., list[reverb.Table]],
) -> None:
    limit = RateLimit(samples_per_insert=8.0, warmup_steps=100, error_buffer=64.0)
    replay = next(t for t in make_tables(rate_limit=limit) if t.name == tables.REPLAY)
    info = replay.info.rate_limiter_info
    assert (info.samples_per_insert, info.min_size_to_sample) == (8.0, 100)
    assert (info.min_diff, info.max_diff) == (800.0 - 64.0, 800.0 + 64.0)
