"""The update as one would first write it: the yardstick of the fast one.

A separate forward pass of all heads for each of the three uses, plain Optax, and no buffers given
away; it is meant for a network of plain layers. It works on the same parameters as the learner's
own update, and a test holds the two equal.
"""

import haiku as hk
import jax
import jax.numpy as jnp
import optax

from learner import losses
from learner.losses import BehaviorLoss, Heads
from learner.networks import Network
from learner.transitions import Transition, n_step_return
from learner.update import LearnerState


class NaiveUpdate:
    """Calls of its own for the forward passes and for the step, as separate functions would."""

    def __init__(
        self,
        network: Network,
        loss: losses.Loss,
        optimizer: optax.GradientTransformation,
        *,
        target_period_updates: int,
        behavior_loss: BehaviorLoss,
    ):
        self._loss, self._behavior_loss = loss, behavior_loss
        self._optimizer, self._period = optimizer, target_period_updates
        self._network = network
        self._forward = jax.jit(network.apply)
        self._step = jax.jit(self._make_step)

    def __call__(self, state: LearnerState, batch: Transition, weights: jax.Array) -> LearnerState:
        """One update."""
        online_t = self._forward(state.params, batch.o_t)
        target_t = self._forward(state.target_params, batch.o_t)
        return self._step(state, batch, weights, online_t, target_t)

    def _make_step(
        self,
        state: LearnerState,
        batch: Transition,
        weights: jax.Array,
        online_t: Heads,
        target_t: Heads,
    ) -> LearnerState:
        policy_t = jax.vmap(self._loss.bootstrap_policy)(online_t)
        return_t, discount_t = jax.vmap(n_step_return)(batch.r_t, batch.discount_t)
        backup = jax.vmap(lambda *args: losses.backup_target(self._loss, *args))(
            target_t, policy_t, return_t, discount_t
        )

        def total(params: hk.Params) -> jax.Array:
            online = self._network.apply(params, batch.o_tm1)
            errors = jax.vmap(self._loss.errors)(online, batch.a_tm1, backup)
            value = jnp.mean(weights * optax.huber_loss(errors.regressed).sum(axis=1))
            if not self._loss.behavior_head:
                return value
            return value + jnp.mean(jax.vmap(self._behavior_loss)(online.logits, batch))

        gradients = jax.grad(total)(state.params)
        direction, opt_state = self._optimizer.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, direction)
        updates = state.updates + 1
        due = updates % self._period == 0
        target = jax.tree.map(
            lambda new, old: jnp.where(due, new, old), params, state.target_params
        )
        return LearnerState(params, target, opt_state, updates)
