"""CPU layers: the parameters, values and gradients of the plain ones."""

from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from learner.cpu import layers
from learner.networks import scaled_pixels

RNG = np.random.default_rng(0)


def random(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


def random_stack(side: int) -> jax.Array:
    return jnp.asarray(RNG.integers(0, 256, (2, 3, side, side), np.uint8))


def assert_same_function(ours: Any, plain: Any, *arguments: jax.Array, atol: float) -> None:
    """Values, and gradients with respect to every argument."""
    expected, expected_vjp = jax.vjp(plain, *arguments)
    found, found_vjp = jax.vjp(ours, *arguments)
    np.testing.assert_allclose(found, expected, atol=atol)
    cotangent = random(*expected.shape)
    for gradient, reference in zip(found_vjp(cotangent), expected_vjp(cotangent), strict=True):
        np.testing.assert_allclose(gradient, reference, atol=10 * atol)


def plain_convolution(x: jax.Array, w: jax.Array, stride: int) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), "VALID", dimension_numbers=layout)


def test_a_bias_is_added_to_every_pixel() -> None:
    def plain(x: jax.Array, b: jax.Array) -> jax.Array:
        return x + jnp.broadcast_to(b, x.shape)

    assert_same_function(layers.add_bias, plain, random(3, 5, 6, 4), random(4), atol=1e-6)


def test_a_dense_product_is_a_matrix_product() -> None:
    assert_same_function(layers.dense, jnp.matmul, random(3, 7), random(7, 5), atol=1e-6)


# The third is as the `tiny` network has it: strides that leave a rest of the frame.
@pytest.mark.parametrize(
    ("side", "kernel", "stride", "block"),
    [(24, 8, 4, 4), (12, 4, 2, 2), (20, 8, 8, 4), (9, 3, 1, 1), (9, 4, 2, 1), (12, 3, 2, 1)],
)
def test_a_strided_convolution_is_the_plain_one_over_blocks(
    side: int, kernel: int, stride: int, block: int
) -> None:
    x, w = random(3, side, side, 2), random(kernel, kernel, 2, 5)
    assert_same_function(
        lambda x, w: layers.strided_convolution(x, w, stride),
        lambda x, w: plain_convolution(x, w, stride),
        *(x, w),
        atol=1e-4,
    )
    text = jax.jit(layers.strided_convolution, static_argnames="stride").lower(x, w, stride=stride)
    assert f"{3}x{side // block}x{side // block}x{2 * block**2}xf32" in text.as_text()


def test_depth_to_space_undoes_space_to_depth() -> None:
    x = random(2, 8, 12, 3)
    depth = layers.space_to_depth(x, 4)
    assert depth.shape == (2, 2, 3, 48)
    # By column, row and channel.
    np.testing.assert_array_equal(
        depth[1, 1, 2], np.asarray(x[1, 4:8, 8:12]).transpose(1, 0, 2).ravel()
    )
    np.testing.assert_array_equal(layers.depth_to_space(depth, 4), x)


def test_blocks_of_bytes_are_frames_with_space_to_depth() -> None:
    stack = random_stack(12)
    blocks = jax.jit(layers.pixel_blocks)(stack)
    assert blocks.dtype == jnp.float32
    expected = layers.space_to_depth(jnp.moveaxis(stack, 1, -1), 4)
    np.testing.assert_array_equal(blocks, expected)


def test_every_shade_of_gray_is_kept() -> None:
    shades = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    assert sorted(np.asarray(layers.pixel_blocks(shades)).ravel().tolist()) == list(range(256))


def test_only_bytes_become_blocks() -> None:
    with pytest.raises(AssertionError, match="uint8"):
        layers.pixel_blocks(jnp.zeros((1, 4, 8, 8)))


@pytest.mark.parametrize("normalize", [False, True])
def test_pixels_are_the_plain_ones(normalize: bool) -> None:
    stack = random_stack(20)
    found, expected = (
        jax.jit(f, static_argnames="normalize")(stack, normalize=normalize)
        for f in (layers.pixels, scaled_pixels)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_on_its_way_to_the_first_convolution_no_frame_is_laid_out_pixel_by_pixel() -> None:
    """`pixels` and the convolution turn axes in opposite ways, and XLA drops both turns."""

    def first_layer(stack: jax.Array, w: jax.Array) -> jax.Array:
        return layers.strided_convolution(layers.pixels(stack, normalize=True), w, 4)

    stack = jnp.zeros((2, 4, 84, 84), jnp.uint8)
    compiled = jax.jit(first_layer).lower(stack, jnp.zeros((8, 8, 4, 16))).compile().as_text()
    assert "f32[2,21,21,64]" in compiled
    assert "f32[2,84,84,4]" not in compiled


def jaxpr_of_gradient(function: Any, argument: Any) -> str:
    return str(jax.make_jaxpr(jax.grad(lambda x: function(x).sum()))(argument))


FITTING = {"padding": "VALID", "stride": 2}
CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "fits": FITTING,
    "padded": {"padding": "SAME", "stride": 2},
    "dilated": FITTING | {"rate": 2, "stride": 1},
    "grouped": FITTING | {"feature_group_count": 2},
    "without bias": FITTING | {"with_bias": False},
    "uneven stride": FITTING | {"stride": (1, 2)},
    "masked": FITTING | {"mask": np.tri(16).reshape(4, 4, 4, 4).astype(np.float32)},
    "channels first": FITTING | {"data_format": "NCHW"},
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_is_haikus_own_and_where_it_does_not_fit_it_is_that_one(name: str) -> None:
    options, x = CONVOLUTIONS[name], random(2, 4, 4, 4) if name == "masked" else random(2, 8, 8, 4)
    ours, plain = (
        hk.without_apply_rng(hk.transform(lambda x, c=c: c(4, 4, **options, name="conv")(x)))
        for c in (layers.Conv2D, hk.Conv2D)
    )
    params = plain.init(jax.random.PRNGKey(0), x)
    jax.tree.map(np.testing.assert_array_equal, ours.init(jax.random.PRNGKey(0), x), params)
    text = jaxpr_of_gradient(lambda params: ours.apply(params, x), params)
    assert ("optimization_barrier" in text) == (name == "fits")
    assert_same_function(
        lambda w: ours.apply({"conv": params["conv"] | {"w": w}}, x),
        lambda w: plain.apply({"conv": params["conv"] | {"w": w}}, x),
        params["conv"]["w"],
        atol=1e-5,
    )


@pytest.mark.parametrize(
    ("with_bias", "shape", "fits"),
    [
        (True, (3, 128), True),
        (False, (3, 128), False),
        (True, (128,), False),
        (True, (3, 6), False),
    ],
)
def test_a_linear_layer_is_haikus_own_and_where_it_does_not_fit_it_is_that_one(
    with_bias: bool, shape: tuple[int, ...], fits: bool
) -> None:
    x = random(*shape)
    ours, plain = (
        hk.without_apply_rng(
            hk.transform(lambda x, c=c: c(128, with_bias=with_bias, name="linear")(x))
        )
        for c in (layers.Linear, hk.Linear)
    )
    params = plain.init(jax.random.PRNGKey(0), x)
    jax.tree.map(np.testing.assert_array_equal, ours.init(jax.random.PRNGKey(0), x), params)
    assert ("optimization_barrier" in jaxpr_of_gradient(lambda x: ours.apply(params, x), x)) == fits
    assert_same_function(
        lambda x: ours.apply(params, x), lambda x: plain.apply(params, x), x, atol=1e-5
    )


@pytest.mark.parametrize(("layer", "shape"), [("Conv2D", (2, 8, 8, 4)), ("Linear", (3, 128))])
def test_a_layer_asked_for_a_precision_is_haikus_own(layer: str, shape: tuple[int, ...]) -> None:
    x = random(*shape)
    options = {"padding": "VALID", "kernel_shape": 4} if layer == "Conv2D" else {}

    def apply_with(package: Any) -> hk.Transformed:
        def apply(x: jax.Array) -> jax.Array:
            made = getattr(package, layer)(128, **options, name="layer")
            return made(x, precision=lax.Precision.HIGHEST)

        return hk.without_apply_rng(hk.transform(apply))

    ours, plain = apply_with(layers), apply_with(hk)
    params = plain.init(jax.random.PRNGKey(0), x)
    np.testing.assert_allclose(ours.apply(params, x), plain.apply(params, x), atol=1e-6)
    text = jaxpr_of_gradient(lambda params: ours.apply(params, x), params)
    assert "HIGHEST" in text and "optimization_barrier" not in text
