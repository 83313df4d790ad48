"""Losses of the average behavior policy: by hand, and against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from learner.losses import BEHAVIOR_LOSSES, distribution_loss, sampled_action_loss
from learner.transitions import Transition

LOGITS = np.array([0.3, -1.2, 2.0], np.float32)


def transition(action: int, epsilon: float = 0.4, greedy: int = 2) -> Transition:
    unused = jnp.zeros(1)
    return Transition(
        o_tm1=unused,
        o_t=unused,
        a_tm1=jnp.int32(action),
        r_t=unused,
        discount_t=unused,
        epsilon=jnp.float32(epsilon),
        greedy_tm1=jnp.int32(greedy),
    )


def log_mu() -> np.ndarray:
    return LOGITS - np.log(np.exp(LOGITS.astype(np.float64)).sum())


def test_the_sampled_loss_is_the_likelihood_of_the_action_taken() -> None:
    for action in range(3):
        loss = sampled_action_loss(jnp.asarray(LOGITS), transition(action))
        np.testing.assert_allclose(loss, -log_mu()[action], rtol=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "acted"),
    [(0.0, [0.0, 1.0, 0.0]), (0.3, [0.1, 0.8, 0.1]), (1.0, [1 / 3, 1 / 3, 1 / 3])],
)
def test_the_distribution_is_that_of_epsilon_greedy(epsilon: float, acted: list[float]) -> None:
    loss = distribution_loss(jnp.asarray(LOGITS), transition(0, epsilon, greedy=1))
    np.testing.assert_allclose(loss, -np.dot(acted, log_mu()), rtol=1e-6)


def test_both_losses_agree_in_expectation_with_their_gradients() -> None:
    epsilon, greedy = 0.4, 2
    acted = epsilon / 3 + (1 - epsilon) * (np.arange(3) == greedy)
    values, gradients = zip(
        *(
            jax.value_and_grad(sampled_action_loss)(jnp.asarray(LOGITS), transition(a))
            for a in range(3)
        ),
        strict=True,
    )
    value, gradient = jax.value_and_grad(distribution_loss)(
        jnp.asarray(LOGITS), transition(0, epsilon, greedy)
    )
    np.testing.assert_allclose(value, np.dot(acted, values), rtol=1e-6)
    np.testing.assert_allclose(gradient, acted @ np.stack(gradients), atol=1e-6)


def test_the_names_in_the_config_mean_these_losses() -> None:
    assert dict(BEHAVIOR_LOSSES) == {
        "sampled": sampled_action_loss,
        "distribution": distribution_loss,
    }
