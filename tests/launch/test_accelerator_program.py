"""The program that an accelerator gets from a config, exported without one: one call of the device.

Exports hold what XLA compiles there; how fast that runs, and whether it fits, they cannot tell.
"""

import functools
import re

import jax
import jax.export
import numpy as np
import pytest

from launch import build
from launch.profile.resident_batches import random_batch
from learner.backend import PLAIN, backend_for
from tests.launch.tiny_run import tiny_config

UPDATES, BATCH = 4, 8
PRODUCTS = re.compile(r"stablehlo\.(?:dot_general|convolution)\W.*")


@functools.cache
def exported(platform: str, precision: str = "default", network: str = "tiny") -> tuple[str, int]:
    """The StableHLO of one call of the learner, and how many arrays its state has."""
    config = tiny_config(
        network=network,
        updates_per_dispatch=UPDATES,
        batch_size=BATCH,
        matmul_precision=precision,
    )
    state, update = build.make_learner(config, backend_for(platform))
    batch = random_batch(config, np.random.default_rng(0))
    arguments = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),
        (state, batch, np.ones(UPDATES * BATCH, np.float32)),
    )
    if platform == "cpu":  # its custom calls are no matter for exports
        text = update.lower(*arguments).as_text()  # type: ignore[attr-defined]
    else:
        text = jax.export.export(update, platforms=[platform])(*arguments).mlir_module()
    return text, len(jax.tree.leaves(state))


def inputs(text: str) -> str:
    [line] = [line for line in text.splitlines() if "func public @main" in line]
    return line.split("->")[0]


ACCELERATORS = pytest.mark.parametrize("platform", ["cuda", "tpu"])


@ACCELERATORS
def test_several_updates_are_one_loop_on_the_device(platform: str) -> None:
    text, _ = exported(platform, network="nature")
    assert text.count("stablehlo.while") == 1


@ACCELERATORS
def test_frames_cross_to_the_device_as_bytes_and_become_floats_there(platform: str) -> None:
    text, _ = exported(platform)
    stacks = f"{UPDATES * BATCH}x4x84x84"
    assert inputs(text).count(f"tensor<{stacks}xui8>") == 2  # o_tm1 and o_t
    assert f"{stacks}xf32" not in inputs(text)
    assert re.search(r"stablehlo\.convert.*ui8>\) -> tensor<[\dx]*xf32>", text)


@pytest.mark.parametrize("platform", ["cuda", "cpu"])
def test_what_the_prefetch_thread_transfers_are_bytes(platform: str) -> None:
    frames, rows = np.zeros((6, 84, 84), np.uint8), np.arange(8, dtype=np.int32).reshape(2, 4) - 2
    for stacks in backend_for(platform).take_stacks(frames, rows, rows):
        assert isinstance(stacks, jax.Array)
        assert stacks.dtype == np.uint8


@ACCELERATORS
def test_all_of_the_state_is_donated(platform: str) -> None:
    text, leaves = exported(platform)
    assert inputs(text).count("tf.aliasing_output") == leaves


@pytest.mark.parametrize("platform", ["cuda", "tpu", "cpu"])
@pytest.mark.parametrize("precision", ["high", "highest"])
def test_every_product_has_the_precision_asked_for(platform: str, precision: str) -> None:
    products = PRODUCTS.findall(exported(platform, precision)[0])
    assert len(products) > 20
    assert all(product.count(precision.upper()) == 2 for product in products)
    assert not any("HIGH" in product for product in PRODUCTS.findall(exported(platform)[0]))


def test_an_accelerator_is_not_given_what_is_there_for_cpus() -> None:
    assert backend_for("tpu") is PLAIN
    text, _ = exported("tpu", network="nature")
    assert "custom_call" not in text and "optimization_barrier" not in text
