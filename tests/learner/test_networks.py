"""The networks: their parts, what acting needs of them, and where gradients stop."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.acting import acting_params
from learner.backend import backend_for
from learner.losses import ALGORITHMS
from learner.networks import (
    NETWORKS,
    PLAIN_LAYERS,
    Architecture,
    Layers,
    Network,
    make_network,
    scaled_pixels,
)

NUM_ACTIONS = 5
NAMES = sorted(ALGORITHMS)
HEADS = {
    "q": {"advantage"},
    "dueling": {"advantage", "value"},
    "behavior_dueling": {"advantage", "value", "behaviour"},
    "va": {"advantage", "value", "behaviour"},
}


@functools.cache
def network_of(name: str, normalize: bool = False) -> Network:
    loss = ALGORITHMS[name]
    return make_network(
        NETWORKS["tiny"],
        NUM_ACTIONS,
        value_head=loss.value_head,
        behavior_head=loss.behavior_head,
        normalize=normalize,
    )


@functools.cache
def params_of(name: str, normalize: bool = False) -> dict:
    """Random parameters of the right shapes, without compiling the initialization."""
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(network_of(name, normalize).init, jax.random.PRNGKey(0))
    return jax.tree.map(lambda s: jnp.asarray(0.1 * rng.normal(size=s.shape), s.dtype), shapes)


@pytest.fixture(scope="module")
def stacks() -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).integers(0, 256, (6, 4, 84, 84), np.uint8))


def modules(params: dict) -> set[str]:
    return {name.split("/")[0] for name in params}


@pytest.mark.parametrize("name", NAMES)
def test_a_network_has_just_the_heads_its_algorithm_needs(name: str, stacks: jax.Array) -> None:
    assert modules(params_of(name)) == {"torso"} | HEADS[name]
    heads = network_of(name).apply(params_of(name), stacks)
    assert heads.value.shape == (6,)
    assert heads.advantage.shape == heads.logits.shape == (6, NUM_ACTIONS)
    assert bool(jnp.any(heads.value)) == ("value" in HEADS[name])
    assert bool(jnp.any(heads.logits)) == ("behaviour" in HEADS[name])


@pytest.mark.parametrize("name", NAMES)
def test_acting_needs_neither_value_nor_behavior(name: str, stacks: jax.Array) -> None:
    params = params_of(name)
    subset = acting_params(params)
    assert modules(subset) == {"torso", "advantage"}
    advantage = network_of(name).advantage(subset, stacks)
    heads = network_of(name).apply(params, stacks)
    np.testing.assert_allclose(advantage, heads.advantage, atol=1e-6)
    q_values = jax.vmap(ALGORITHMS[name].q_values)(heads)
    np.testing.assert_array_equal(advantage.argmax(axis=1), q_values.argmax(axis=1))


def test_normalized_networks_act_from_their_subset_too(stacks: jax.Array) -> None:
    network, params = network_of("va", normalize=True), params_of("va", normalize=True)
    assert set(params) - set(params_of("va"))
    advantage = network.advantage(acting_params(params), stacks)
    np.testing.assert_allclose(advantage, network.apply(params, stacks).advantage, atol=1e-5)


def test_a_normalized_network_sees_neither_brightness_nor_contrast() -> None:
    network, params = network_of("va", normalize=True), params_of("va", normalize=True)
    dark = np.random.default_rng(0).integers(0, 100, (2, 4, 84, 84), np.uint8)
    bright = (2 * dark + 50).astype(np.uint8)
    heads, brighter = (network.apply(params, jnp.asarray(stacks)) for stacks in (dark, bright))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-3), heads, brighter)
    assert np.ptp(heads.advantage) > 0.1


def test_a_normalized_network_takes_an_empty_screen() -> None:
    network, params = network_of("va", normalize=True), params_of("va", normalize=True)
    heads = network.apply(params, jnp.full((1, 4, 84, 84), 87, jnp.uint8))
    assert all(np.isfinite(head).all() for head in heads)


def test_the_likelihood_of_the_behavior_reaches_the_behavior_head_alone(
    stacks: jax.Array,
) -> None:
    network, params = network_of("va"), params_of("va")
    gradients = jax.jit(jax.grad(lambda p: jnp.sum(network.apply(p, stacks).logits ** 2)))(params)
    for name, leaves in gradients.items():
        for leaf in leaves.values():
            assert bool(jnp.any(leaf)) == name.startswith("behaviour/"), name


def test_values_and_advantages_reach_the_torso_and_never_the_behavior_head(
    stacks: jax.Array,
) -> None:
    network, params = network_of("va"), params_of("va")

    def total(params: dict) -> jax.Array:
        heads = network.apply(params, stacks)
        return jnp.sum(heads.value**2) + jnp.sum(heads.advantage**2)

    for name, leaves in jax.jit(jax.grad(total))(params).items():
        for leaf in leaves.values():
            assert bool(jnp.any(leaf)) != name.startswith("behaviour/"), name


def test_pixels_are_scaled_to_the_unit_interval() -> None:
    """If every layer takes the mean of its inputs, the output is the brightness."""
    averaging = {
        name: {
            "w": jnp.full_like(layer["w"], layer["b"].size / layer["w"].size),
            "b": 0 * layer["b"],
        }
        for name, layer in params_of("q").items()
    }
    for pixel, brightness in ((255, 1.0), (51, 0.2), (0, 0.0)):
        stack = jnp.full((1, 4, 84, 84), pixel, jnp.uint8)
        advantage = network_of("q").advantage(averaging, stack)
        np.testing.assert_allclose(advantage, np.full((1, NUM_ACTIONS), brightness), rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 84, 84, 4), (4, 84, 84), (1, 4, 42, 42)])
def test_stacks_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError):
        network_of("q").advantage(params_of("q"), jnp.zeros(shape, jnp.uint8))


@pytest.mark.parametrize("normalize", [False, True])
def test_parameters_keep_the_names_and_shapes_that_checkpoints_hold(normalize: bool) -> None:
    found = {
        f"{module}/{name}": leaf.shape
        for module, leaves in params_of("va", normalize).items()
        for name, leaf in leaves.items()
    }
    expected = {
        "torso/conv_0/w": (8, 8, 4, 4),
        "torso/conv_0/b": (4,),
        "torso/conv_1/w": (4, 4, 4, 8),
        "torso/conv_1/b": (8,),
    }
    for head, outputs in (("advantage", NUM_ACTIONS), ("value", 1), ("behaviour", NUM_ACTIONS)):
        expected |= {
            f"{head}/hidden/w": (128, 16),
            f"{head}/hidden/b": (16,),
            f"{head}/out/w": (16, outputs),
            f"{head}/out/b": (outputs,),
        }
        if normalize:
            expected |= {f"{head}/norm/scale": (16,), f"{head}/norm/offset": (16,)}
    assert found == expected


def test_the_residual_torso_has_the_size_of_the_original() -> None:
    """Espeholt et al. (2018): fifteen convolutions of 3 x 3, and 32 maps of 11 x 11 at the end."""
    network = make_network(NETWORKS["impala"], 4, value_head=False, behavior_head=False)
    shapes = jax.eval_shape(network.init, jax.random.PRNGKey(0))
    torso = {name: leaves for name, leaves in shapes.items() if name.startswith("torso/")}
    assert len(torso) == 15
    assert sum(leaf.size for leaf in jax.tree.leaves(torso)) == 97_744
    assert shapes["advantage/hidden"]["w"].shape == (11 * 11 * 32, 256)


@dataclasses.dataclass(frozen=True)
class Pooled(Architecture):
    """A torso with the smallest kernels there are, as a user might write it."""

    hidden: int = 8

    def torso(self, pixels: jax.Array, layers: Layers) -> jax.Array:
        return layers.Conv2D(2, 3, 2, name="conv")(pixels).mean(axis=(1, 2))


def test_kernels_and_strides_may_be_any_on_every_backend(stacks: jax.Array) -> None:
    found = []
    for layers in (PLAIN_LAYERS, backend_for("cpu").layers):
        network = make_network(
            Pooled(), NUM_ACTIONS, value_head=True, behavior_head=True, layers=layers
        )
        found.append(network.apply(network.init(jax.random.PRNGKey(0)), stacks))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-6), *found)
    assert np.ptp(found[0].advantage) > 0


def test_stacks_are_standardized_by_every_fourth_pixel_of_each_axis() -> None:
    stack = np.random.default_rng(0).integers(0, 256, (2, 4, 84, 84), np.uint8)
    pixels = np.moveaxis(stack / 255.0, 1, -1)
    sample = pixels[:, ::4, ::4].reshape(2, -1)
    mean, variance = sample.mean(axis=1), sample.var(axis=1)
    expected = (pixels.T - mean).T / np.sqrt(variance + 1e-4)[:, None, None, None]
    found = scaled_pixels(jnp.asarray(stack), normalize=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_nature_network_has_the_size_of_the_original() -> None:
    """Mnih et al. (2015) on 4 actions: 1,686,180 weights and biases."""
    network = make_network(NETWORKS["nature"], 4, value_head=False, behavior_head=False)
    shapes = jax.eval_shape(network.init, jax.random.PRNGKey(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == 1_686_180
