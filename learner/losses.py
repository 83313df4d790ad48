"""The four algorithms, as errors on one transition.

Everything is unbatched (`vmap` it) and returns errors, not losses: the deep learner puts a Huber
loss on them, a tabular learner squares them. V, A and mu below are the heads of `Heads`; the minus
marks the target network, nu the centring policy (under stop-gradient: it is learned from the
likelihood of the actions alone).

| name               | Q used to act and to bootstrap | errors on (x, a)                        |
|--------------------|--------------------------------|-----------------------------------------|
| `q`                | A                              | Q(x,a) - y                              |
| `dueling`          | V + A - mean A                 | Q(x,a) - y                              |
| `behavior_dueling` | V + A - mu A                   | Q(x,a) - y                              |
| `va`               | V + A - mu A                   | V(x) - y  and  A(x,a) - (y - V(x))      |

with y = R + D sum_b pi(b) Q^-(x_n, b). For control pi is greedy in the online network at x_n
(double Q-learning); for policy evaluation it is the policy evaluated.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

import chex
import jax
import jax.numpy as jnp


class Heads(NamedTuple):
    """What a network says of one observation. Heads an algorithm does not use are zero."""

    value: jax.Array  # []: V
    advantage: jax.Array  # [A]: f, raw A, or Q itself for algorithm `q`
    logits: jax.Array  # [A]: of mu; zeros mean the uniform policy


class Errors(NamedTuple):
    """Errors of one transition: what is regressed, and the error of the implied Q."""

    regressed: jax.Array  # [k]: each gets its own loss term
    td: jax.Array  # []: Q(x, a) - y, used for priorities and logs


def centred_q(heads: Heads) -> jax.Array:
    """Q = V + A - sum_b mu(b) A(b), mu under stop-gradient (paper: behavior dueling)."""
    chex.assert_rank([heads.value, heads.advantage, heads.logits], [0, 1, 1])
    mu = jax.nn.softmax(jax.lax.stop_gradient(heads.logits))
    return heads.value + heads.advantage - jnp.sum(mu * heads.advantage)


class Loss(Protocol):
    """An algorithm: which heads it needs, its Q, and its errors."""

    @property
    def value_head(self) -> bool:
        """Whether the network needs a V head beside the advantage head."""

    @property
    def behaviour_head(self) -> bool:
        """Whether the network needs a head for mu, the average behaviour policy."""

    def q_values(self, heads: Heads) -> jax.Array:
        """The Q-function the heads imply, for all actions."""

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        """Errors at (x, a) against the back-up target y."""


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
class QLearning:
    """n-step Q-learning: one head, one error."""

    value_head: bool = False
    behaviour_head: bool = False

    def q_values(self, heads: Heads) -> jax.Array:
        """Q is the advantage head itself."""
        return heads.advantage

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        """Q(x, a) - y."""
        return _q_error(self.q_values(online_tm1), a_tm1, backup)


@dataclasses.dataclass(frozen=True)
class Dueling:
    """Q-learning on Q = V + A - nu A; nu is mu where a behaviour head exists, else uniform."""

    value_head: bool = True
    behaviour_head: bool = False

    def q_values(self, heads: Heads) -> jax.Array:
        """Centred Q, by the mean of A where nu is uniform."""
        if not self.behaviour_head:
            heads = heads._replace(logits=jnp.zeros_like(heads.logits))
        return centred_q(heads)

    def errors(self, online_tm1: Heads, a_tm1: jax.Array, backup: jax.Array) -> Errors:
        """Q(x, a) - y."""
        return _q_error(self.q_values(online_tm1), a_tm1, backup)


@dataclasses.dataclass(frozen=True)
class VALearning:
    """VA-learning: V and A are regressed, each on its own, to one shared back-up.

    A is regressed raw; only the bootstrap is centred. The baseline in the target of A is the
    online V, not the target network's (paper, Appendix C: important in practice).
    """

    value_head: bool = True
    behaviour_head: bool = True

    def q_values(self, heads: Heads) -> jax.Array:
        """Centred Q, the one bootstrapped from."""
        return centred_q(heads)

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
        "behavior_dueling": Dueling(behaviour_head=True),
        "dueling": Dueling(),
        "q": QLearning(),
    }
)
