"""What the learner node makes of what it samples."""

import numpy as np

from actors.observation import OBSERVATION_SHAPE
from launch.nodes.learner import to_device, transition_of
from reverb_server.sampler import SampledBatch
from reverb_server.tables import Step, unpack_steps

# Two items with a window of three; every number tells its field, item and row.
STEPS = np.array(
    [
        [[100 * field + 10 * item + row for field in range(5)] for row in range(3)]
        for item in (0, 1)
    ],
    np.float32,
)


def sampled() -> SampledBatch:
    stacks = np.random.default_rng(0).integers(0, 256, (2, 2, *OBSERVATION_SHAPE), np.uint8)
    return SampledBatch(
        o_tm1=stacks[0],
        o_t=stacks[1],
        steps=unpack_steps(STEPS),
        keys=np.array([7, 8], np.uint64),
        weights=np.array([1.0, 0.5], np.float32),
    )


def test_steps_become_the_columns_of_a_transition() -> None:
    batch = sampled()
    transition = transition_of(batch)
    assert Step._fields == ("action", "reward", "discount", "epsilon", "greedy")
    expected = {
        "o_tm1": batch.o_tm1,
        "o_t": batch.o_t,
        "a_tm1": np.array([0, 10], np.int32),
        "r_t": np.array([[100, 101, 102], [110, 111, 112]], np.float32),
        "discount_t": np.array([[200, 201, 202], [210, 211, 212]], np.float32),
        "epsilon": np.array([300, 310], np.float32),
        "greedy_tm1": np.array([400, 410], np.int32),
    }
    assert transition._fields == tuple(expected)
    for name, column in expected.items():
        found = getattr(transition, name)
        np.testing.assert_array_equal(found, column, name)
        assert found.dtype == column.dtype, name


def test_keys_and_weights_go_with_the_batch_and_no_batch_stays_none() -> None:
    batch = to_device(sampled())
    assert batch is not None
    assert batch.keys.tolist() == [7, 8]
    assert batch.weights.tolist() == [1.0, 0.5]
    assert to_device(None) is None
