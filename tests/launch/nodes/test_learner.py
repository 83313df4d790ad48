"""What the learner node makes of what it samples."""

import dataclasses

import numpy as np
import pytest
import reverb

from actors.observation import FRAME_SHAPE
from launch.nodes.learner import BatchStream, make_streams
from launch.nodes.tables import item_layout, replay_tables
from launch.replay import replay_limit
from reverb_server.sampler import SampledBatch
from reverb_server.tables import Step, unpack_steps
from tests.launch.tiny_run import tiny_config


def small_config(*, prioritized: bool, sample_streams: int | None = None):
    config = tiny_config(updates_per_dispatch=2, batch_size=3, n_step=2)
    replay = dataclasses.replace(
        config.replay, prioritized=prioritized, sample_streams=sample_streams
    )
    return dataclasses.replace(config, replay=replay)


def sampled_for(config) -> SampledBatch:
    """Items of one long episode; the action of a row tells its item and row."""
    layout, items = item_layout(config), config.sampled_items
    frames = np.random.default_rng(0).integers(0, 256, (items, layout.rows, *FRAME_SHAPE), np.uint8)
    steps = np.zeros((items, layout.rows, len(Step._fields)), np.float32)
    columns = unpack_steps(steps)
    columns.action[:] = 10 * np.arange(items)[:, None] + np.arange(layout.rows)
    columns.age[:] = 3
    return SampledBatch(
        frames=frames,
        steps=columns,
        keys=np.arange(items, dtype=np.uint64),
        weights=np.linspace(0.1, 1.0, items).astype(np.float32),
    )


@pytest.fixture
def address_of():
    """The address of a server with the tables of a config."""
    servers = []

    def start(config) -> str:
        servers.append(reverb.Server(replay_tables(config, replay_limit(config))))
        return f"localhost:{servers[-1].port}"

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def stream_of(address_of):
    return lambda config: BatchStream(
        config, item_layout(config), address_of(config), np.random.SeedSequence(0)
    )


def test_items_of_several_transitions_give_one_to_each_update(stream_of) -> None:
    config = small_config(prioritized=False)
    assert (config.item_transitions, config.sampled_items) == (2, 3)
    sampled = sampled_for(config)
    batch = stream_of(config).to_device(sampled)
    actions = np.asarray(batch.transition.a_tm1).reshape(2, 3)
    assert (actions // 10).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert sorted(actions.ravel() % 10) == [3, 3, 3, 4, 4, 4]
    assert batch.weights.shape == (6,)
    for i, action in enumerate(actions.ravel().tolist()):
        item, row = divmod(action, 10)
        stack = sampled.frames[item, row - 3 : row + 1]
        np.testing.assert_array_equal(batch.transition.o_tm1[i], stack)


def test_prioritized_items_hold_one_transition_each_with_its_weight_and_key(stream_of) -> None:
    config = small_config(prioritized=True)
    assert (config.item_transitions, config.sampled_items) == (1, 6)
    sampled = sampled_for(config)
    batch = stream_of(config).to_device(sampled)
    assert (np.asarray(batch.transition.a_tm1) // 10).tolist() == list(range(6))
    assert batch.keys.tolist() == list(range(6))
    np.testing.assert_array_equal(batch.weights, sampled.weights)


@pytest.mark.parametrize("streams", [1, 3])
def test_there_are_as_many_streams_as_asked_for(address_of, streams: int) -> None:
    config = small_config(prioritized=False, sample_streams=streams)
    assert len(make_streams(config, address_of(config))) == streams
