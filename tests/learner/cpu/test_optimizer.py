"""The fused step is Optax's own, to rounding, state and all."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.cpu.optimizer import fused_step
from learner.optimizers import OptimizerOptions, falling_rate, make_optimizer, optax_step

# A convolution's weights, a leaf larger than a megabyte, and sizes that fill no vector.
SHAPES = {"conv": (3, 3, 4, 5), "hidden": (700, 400), "bias": (7,), "scalar": ()}
NAMES = ["rmsprop", "adam"]


def random_tree(rng: np.random.Generator, scale: float) -> dict[str, jax.Array]:
    return {
        name: jnp.asarray(rng.normal(scale=scale, size=shape).astype(np.float32))
        for name, shape in SHAPES.items()
    }


def assert_trees_close(ours: Any, theirs: Any) -> None:
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-7), ours, theirs)


@pytest.mark.parametrize("final_rate", [None, 1e-4])
@pytest.mark.parametrize("max_grad_norm", [None, 0.5])
@pytest.mark.parametrize("name", NAMES)
def test_fused_steps_are_optax_steps(
    name: str, max_grad_norm: float | None, final_rate: float | None
) -> None:
    options = OptimizerOptions(name, falling_rate(1e-2, final_rate, 4), 1e-3, max_grad_norm)
    optimizer = make_optimizer(options)
    fused, plain = jax.jit(fused_step(options)), jax.jit(optax_step(optimizer))
    rng = np.random.default_rng(0)
    params = random_tree(rng, 1.0)
    ours = theirs = (params, optimizer.init(params))
    # Both sides of the norm that is clipped at: it is about 529 times the scale.
    for scale in (1e-3, 1e-4, 1e-3, 1e-2, 1e-3):
        gradients = random_tree(rng, scale)
        *ours, our_norm = fused(gradients, ours[1], ours[0])
        *theirs, their_norm = plain(gradients, theirs[1], theirs[0])
        np.testing.assert_allclose(our_norm, their_norm, rtol=1e-4)
    assert_trees_close(tuple(ours), tuple(theirs))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_donated_stays_as_it_was(name: str) -> None:
    step = fused_step(OptimizerOptions(name, 1e-2, 1e-3))
    params = random_tree(np.random.default_rng(1), 1.0)
    before = jax.tree.map(np.array, params)
    state = make_optimizer(OptimizerOptions(name, 1e-2, 1e-3)).init(params)
    stepped = jax.jit(step)(params, state, params)
    jax.tree.map(np.testing.assert_array_equal, params, before)
    assert not np.allclose(stepped.params["hidden"], before["hidden"])


@pytest.mark.parametrize("broken", [np.nan, np.inf])
@pytest.mark.parametrize("name", NAMES)
def test_a_broken_gradient_is_not_hidden(name: str, broken: float) -> None:
    step = fused_step(OptimizerOptions(name, 1e-2, 1e-3))
    params = jnp.ones(100)
    state = make_optimizer(OptimizerOptions(name, 1e-2, 1e-3)).init(params)
    stepped = jax.jit(step)(params.at[50].set(broken), state, params)
    assert not np.isfinite(stepped.params[50])
    assert np.isfinite(np.delete(stepped.params, 50)).all()
    assert not np.isfinite(stepped.grad_norm)


@pytest.mark.parametrize("name", NAMES)
def test_where_squares_overflow_it_goes_where_optax_goes(name: str) -> None:
    options = OptimizerOptions(name, 1e25, 1e-3)
    params = jnp.linspace(-1.0, 1.0, 100)
    state = make_optimizer(options).init(params)
    gradients = jnp.where(jnp.arange(100) % 2, 1e25, 1e-3)
    ours = jax.jit(fused_step(options))(gradients, state, params)
    theirs = jax.jit(optax_step(make_optimizer(options)))(gradients, state, params)
    np.testing.assert_allclose(ours.params, theirs.params, rtol=2e-5)  # NaN in the same places
    assert_trees_close(ours.opt_state, theirs.opt_state)
