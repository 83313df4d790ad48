"""The optimizers against their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from learner.optimizers import OptimizerOptions, falling_rate, make_optimizer

EPSILON = 0.01 / 32**2  # the paper's


def apply_in_turn(optimizer: optax.GradientTransformation, gradients: np.ndarray) -> np.ndarray:
    params = jnp.zeros(gradients.shape[1])
    state = optimizer.init(params)
    for gradient in gradients:
        direction, state = optimizer.update(jnp.asarray(gradient), state, params)
        params = optax.apply_updates(params, direction)
    return np.asarray(params)


def test_rmsprop_is_centered_and_keeps_epsilon_inside_the_root() -> None:
    gradients = np.random.default_rng(0).normal(scale=0.01, size=(20, 3)).astype(np.float32)
    mean, mean_square, params = np.zeros(3), np.zeros(3), np.zeros(3)
    for g in gradients.astype(np.float64):
        mean = 0.95 * mean + 0.05 * g
        mean_square = 0.95 * mean_square + 0.05 * g**2
        params -= 1e-3 * g / np.sqrt(mean_square - mean**2 + EPSILON)
    optimizer = make_optimizer(OptimizerOptions("rmsprop", 1e-3, EPSILON))
    np.testing.assert_allclose(apply_in_turn(optimizer, gradients), params, rtol=1e-4)


def test_adam_keeps_epsilon_outside_the_root() -> None:
    gradients = np.random.default_rng(1).normal(scale=0.01, size=(20, 3)).astype(np.float32)
    mean, mean_square, params = np.zeros(3), np.zeros(3), np.zeros(3)
    for t, g in enumerate(gradients.astype(np.float64), start=1):
        mean = 0.9 * mean + 0.1 * g
        mean_square = 0.999 * mean_square + 0.001 * g**2
        root = np.sqrt(mean_square / (1 - 0.999**t))
        params -= 1e-3 * mean / (1 - 0.9**t) / (root + 1.5e-2)
    optimizer = make_optimizer(OptimizerOptions("adam", 1e-3, 1.5e-2))
    np.testing.assert_allclose(apply_in_turn(optimizer, gradients), params, rtol=1e-4)


@pytest.mark.parametrize("name", ["rmsprop", "adam"])
def test_the_gradient_is_clipped_by_the_norm_over_all_parameters(name: str) -> None:
    clipped = make_optimizer(OptimizerOptions(name, 1e-3, 1e-2, max_grad_norm=0.5))
    plain = make_optimizer(OptimizerOptions(name, 1e-3, 1e-2))
    long = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
    short = {"a": jnp.array([0.3]), "b": jnp.array([0.4])}
    direction, _ = clipped.update(long, clipped.init(long))
    expected, _ = plain.update(short, plain.init(short))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), direction, expected)
    unclipped, _ = clipped.update(
        {"a": jnp.array([0.1]), "b": jnp.array([0.2])}, clipped.init(long)
    )
    same, _ = plain.update({"a": jnp.array([0.1]), "b": jnp.array([0.2])}, plain.init(long))
    jax.tree.map(np.testing.assert_array_equal, unclipped, same)


def test_a_falling_rate_reaches_its_end_and_stays_there() -> None:
    rate = falling_rate(1e-3, 1e-4, 10)
    assert callable(rate)
    np.testing.assert_allclose([rate(0), rate(5), rate(10), rate(99)], [1e-3, 5.5e-4, 1e-4, 1e-4])


def test_a_rate_without_an_end_is_kept() -> None:
    assert falling_rate(1e-3, None, 10) == 1e-3
