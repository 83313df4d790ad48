"""Prioritized sampling: priorities on their way back, and what they do to the next batches."""

from collections.abc import Callable

import numpy as np
import pytest
import reverb

from reverb_server import priorities, tables
from tests.reverb_server.episodes import make_streams, open_sampler, open_writer, play

MakeServer = Callable[..., reverb.Server]
Connect = Callable[[reverb.Server], reverb.Client]


def item_keys(server: reverb.Server, num_items: int) -> np.ndarray:
    """The keys of all items of the replay table, in no order."""
    source = open_sampler(server, prioritization=None, batch_size=num_items)
    keys: set[int] = set()
    for _ in range(1000):
        batch = source()
        assert batch is not None
        keys |= set(batch.keys.tolist())
        if len(keys) == num_items:
            return np.array(sorted(keys), np.uint64)
    raise AssertionError(f"saw {len(keys)} of {num_items} items")


def test_weights_correct_for_the_priorities_items_were_drawn_with(
    make_server: MakeServer, connect: Connect
) -> None:
    scheme = tables.Prioritization(alpha=0.5, beta=0.4)
    server = make_server(prioritization=scheme)
    with open_writer(connect(server)) as target:
        play(target, make_streams(1, [5]), 1)
    keys = item_keys(server, 4)
    errors = np.array([1.0, 4.0, 9.0, 16.0], np.float32)
    priorities.update_priorities(connect(server), keys, -errors)

    source = open_sampler(server, prioritization=scheme, batch_size=64)
    batch = source()

    assert batch is not None
    assert batch.weights.dtype == np.float32
    # P(i) = p_i^0.5 / sum p^0.5 = (1, 2, 3, 4) / 10; w_i = (4 P(i))^-0.4 / max.
    by_key = dict(zip(keys.tolist(), np.array([0.1, 0.2, 0.3, 0.4]), strict=True))
    raw = np.array([(4 * by_key[key]) ** -0.4 for key in batch.keys.tolist()])
    np.testing.assert_allclose(batch.weights, raw / raw.max(), rtol=1e-4)
    assert len(set(batch.keys.tolist())) > 1


def test_new_priorities_decide_what_is_sampled(make_server: MakeServer, connect: Connect) -> None:
    scheme = tables.Prioritization(alpha=1.0, beta=0.4)
    server = make_server(prioritization=scheme)
    with open_writer(connect(server)) as target:
        play(target, make_streams(1, [17]), 1)
    keys = item_keys(server, 16)
    errors = np.zeros(16, np.float32)
    errors[5] = -1e6
    updater = priorities.PriorityUpdater(connect(server))
    updater(keys, errors)
    updater.close(timeout_seconds=30.0)

    batch = open_sampler(server, prioritization=scheme, batch_size=32)()

    assert batch is not None
    assert set(batch.keys.tolist()) == {int(keys[5])}


def test_errors_of_diverged_learning_change_no_priority(
    make_server: MakeServer, connect: Connect
) -> None:
    scheme = tables.Prioritization(alpha=1.0, beta=0.4)
    server = make_server(prioritization=scheme)
    with open_writer(connect(server)) as target:
        play(target, make_streams(1, [17]), 1)
    keys = item_keys(server, 16)
    errors = np.zeros(16, np.float32)
    errors[5] = 1e6
    errors[6], errors[7], errors[8] = np.nan, np.inf, -np.inf
    updater = priorities.PriorityUpdater(connect(server))
    updater(keys[:5], np.full(5, np.nan))
    updater(keys, errors)
    updater.close(timeout_seconds=30.0)

    batch = open_sampler(server, prioritization=scheme, batch_size=32)()

    assert batch is not None
    assert set(batch.keys.tolist()) <= {int(key) for key in keys[5:9]}
    assert int(keys[5]) in batch.keys


def test_the_learner_is_not_held_by_priorities_for_a_server_that_is_gone(
    make_server: MakeServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priorities, "_MAX_WAITING", 2)
    server = make_server(prioritization=tables.Prioritization(0.6, 0.4))
    updater = priorities.PriorityUpdater(connect(server))
    server.stop()
    for _ in range(10):
        updater(np.array([1], np.uint64), np.array([0.5]))
    # Two wait in line, and one may be on its way.
    assert 7 <= updater.dropped_updates <= 8
    updater.close(timeout_seconds=0.1)


def test_a_failed_priority_update_surfaces(make_server: MakeServer, connect: Connect) -> None:
    updater = priorities.PriorityUpdater(connect(make_server()))
    updater(np.array([1, 2], np.uint64), np.array([0.5]))
    with pytest.raises(ValueError, match="shorter"):
        updater.close(timeout_seconds=30.0)
