"""The four algorithms, as errors on one transition, and the losses of mu beside them.

Everything is unbatched (`vmap` it) and returns errors, not losses: the deep learner puts a Huber
loss on them, a tabular learner squares them. V, A and mu below are the heads of `Heads`; the minus
marks the target network, nu the centering policy (under stop-gradient: it is learned from the
likelihood of the actions alone).

| name               | Q used to act and to bootstrap | errors on (x, a)                        |
|--------------------|--------------------------------|-----------------------------------------|
| `q`                | A                              | Q(x,a) - y                              |
| `dueling`          | V + A - mean A                 | Q(x,a) - y                              |
| `behavior_dueling` | V + A - mu A                   | Q(x,a) - y                              |
| `va`               | V + A - mu A                   | V(x) - y  and  A(x,a) - (y - V(x))      |

with y = R + D sum_b pi(b) Q^-(x_n, b). For control pi is the algorithm's bootstrap policy at x_n,
greedy in the online network unless it says otherwise (double Q-learning); for policy evaluation it
is the policy evaluated. One class and one line in `ALGORITHMS` make another algorithm.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

import chex
import jax
import jax.numpy as jnp

from learner.transitions import Transition


class Heads(NamedTuple):
    """What a network says of one observation. Heads an algorithm does not use are zero."""

    value: jax.Array  # []: V
    advantage: jax.Array  # [A]: f, raw A, or Q itself for algorithm `q`
    logits: jax.Array  # [A]: of mu; zeros mean the uniform policy


class Errors(NamedTuple):
    """Errors of one transition: what is regressed, and the error of the implied Q."""

    regressed: jax.Array  # [k]: each gets its own loss term
    td: jax.Array  # []: Q(x, a) - y, used for priorities and logs


def centered_q(heads: Heads) -> jax.Array:
    """Q = V + A - sum_b mu(b) A(b), mu under stop-gradient (paper: behavior dueling)."""
    chex.assert_rank([heads.value, heads.advantage, heads.logits], [0, 1, 1])
    mu = jax.nn.softmax(jax.lax.stop_gradient(heads.logits))
    return heads.value + heads.advantage - jnp.sum(mu * heads.advantage)


class Loss(Protocol):
    """An algorithm: which heads it needs, its Q, its errors, and where it bootstraps from."""

    @property
    @abc.abstractmethod
    def value_head(self) -> bool:
        """Whether the network needs a V head beside the advantage head."""

    @property
    @abc.abstractmethod
    def behavior_head(self) -> bool:
        """Whether the network needs a head for mu, the average behavior policy."""

    @abc.abstractmethod
    def q_values(self, heads: Heads) -> jax.Array:
        """The Q-function the heads imply, for all actions."""

    @abc.abstractmethod
    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        """Errors at (x, a) against the back-up target y."""

    def bootstrap_policy(self, online_t: Heads) -> jax.Array:
        """The distribution pi [A] of the back-up at x_n; greedy where a class says nothing else.

        Heads that it leaves alone cost nothing: the compiler drops what nobody reads.
        """
        return greedy_policy(online_t.advantage)


def backup_target(
    loss: Loss, target_t: Heads, policy_t: jax.Array, return_t: jax.Array, discount_t: jax.Array
) -> jax.Array:
    """y = R + D sum_b pi(b) Q^-(x_n, b). No gradient flows through it."""
    chex.assert_rank([policy_t, return_t, discount_t], [1, 0, 0])
    bootstrap = jnp.sum(policy_t * loss.q_values(target_t))
    return jax.lax.stop_gradient(return_t + discount_t * bootstrap)


def greedy_policy(advantage: jax.Array) -> jax.Array:
    """The greedy policy as a distribution; argmax A = argmax Q, so V and mu are not needed."""
    return jax.nn.one_hot(jnp.argmax(advantage), advantage.shape[0])


@dataclasses.dataclass(frozen=True)
class QLearning(Loss):
    """n-step Q-learning: one head, one error."""

    value_head: bool = False
    behavior_head: bool = False

    def q_values(self, heads: Heads) -> jax.Array:
        """Q is the advantage head itself."""
        return heads.advantage

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        """Q(x, a) - y."""
        return _q_error(self.q_values(online_tm1), a_tm1, backup)


@dataclasses.dataclass(frozen=True)
class Dueling(Loss):
    """Q-learning on Q = V + A - nu A; nu is mu where a behavior head exists, else uniform."""

    value_head: bool = True
    behavior_head: bool = False

    def q_values(self, heads: Heads) -> jax.Array:
        """Centered Q, by the mean of A where nu is uniform."""
        if not self.behavior_head:
            heads = heads._replace(logits=jnp.zeros_like(heads.logits))
        return centered_q(heads)

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        """Q(x, a) - y."""
        return _q_error(self.q_values(online_tm1), a_tm1, backup)


@dataclasses.dataclass(frozen=True)
class VALearning(Loss):
    """VA-learning: V and A are regressed, each on its own, to one shared back-up.

    A is regressed raw; only the bootstrap is centered. The baseline in the target of A is the
    online V, not the target network's (paper, Appendix C, which finds that important).
    """

    value_head: bool = True
    behavior_head: bool = True

    def q_values(self, heads: Heads) -> jax.Array:
        """Centered Q, the one bootstrapped from."""
        return centered_q(heads)

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        """V(x) - y and A(x, a) - (y - V(x))."""
        value, advantage = online_tm1.value, online_tm1.advantage[a_tm1]
        value_error = value - backup
        advantage_error = advantage - (backup - jax.lax.stop_gradient(value))
        td = self.q_values(online_tm1)[a_tm1] - backup
        return Errors(jnp.stack([value_error, advantage_error]), td)


def _q_error(q_tm1: jax.Array, a_tm1: jax.Array, backup: jax.Array) -> Errors:
    td = q_tm1[a_tm1] - backup
    return Errors(td[None], td)


ALGORITHMS: Mapping[str, Loss] = MappingProxyType(
    {
        "va": VALearning(),
        "behavior_dueling": Dueling(behavior_head=True),
        "dueling": Dueling(),
        "q": QLearning(),
    }
)


BehaviorLoss = Callable[[jax.Array, Transition], jax.Array]  # of mu's logits [A], on one transition


def sampled_action_loss(logits: jax.Array, item: Transition) -> jax.Array:
    """-log mu(a | x) for the action taken (paper, Algorithms 2 and 3)."""
    chex.assert_rank([logits, item.a_tm1], [1, 0])
    return -jax.nn.log_softmax(logits)[item.a_tm1]


def distribution_loss(logits: jax.Array, item: Transition) -> jax.Array:
    """Cross-entropy of mu against the epsilon-greedy distribution the action was drawn from.

    Its mean is that of `sampled_action_loss`, its variance lower.
    """
    chex.assert_rank([logits, item.epsilon, item.greedy_tm1], [1, 0, 0])
    num_actions = logits.shape[0]
    greedy = jax.nn.one_hot(item.greedy_tm1, num_actions)
    acted = item.epsilon / num_actions + (1.0 - item.epsilon) * greedy
    return -jnp.sum(acted * jax.nn.log_softmax(logits))


BEHAVIOR_LOSSES: Mapping[str, BehaviorLoss] = MappingProxyType(
    {"sampled": sampled_action_loss, "distribution": distribution_loss}
)
