"""Losses of mu, the average of the actors' epsilon-greedy policies.

Both are unbatched cross-entropies; they differ in what is known of the actor: the action it took,
or the whole distribution it took it from (lower variance, same mean).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import chex
import jax
import jax.numpy as jnp

from learner.transitions import Transition

BehaviourLoss = Callable[[jax.Array, Transition], jax.Array]


def sampled_action_loss(logits: jax.Array, item: Transition) -> jax.Array:
    """-log mu(a | x) for the action taken (paper, Algorithms 2 and 3)."""
    chex.assert_rank([logits, item.a_tm1], [1, 0])
    return -jax.nn.log_softmax(logits)[item.a_tm1]


def distribution_loss(logits: jax.Array, item: Transition) -> jax.Array:
    """Cross-entropy of mu against the actor's epsilon-greedy distribution."""
    chex.assert_rank([logits, item.epsilon, item.greedy_tm1], [1, 0, 0])
    num_actions = logits.shape[0]
    greedy = jax.nn.one_hot(item.greedy_tm1, num_actions)
    acted = item.epsilon / num_actions + (1.0 - item.epsilon) * greedy
    return -jnp.sum(acted * jax.nn.log_softmax(logits))


BEHAVIOUR_LOSSES: Mapping[str, BehaviourLoss] = MappingProxyType(
    {"sampled": sampled_action_loss, "distribution": distribution_loss}
)
