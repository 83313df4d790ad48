"""The update: one batch in, new parameters out, as a pure function of the learner's state.

Target copy, optimizer and counters are inside, so one jitted call (with the state donated) is all
the loop dispatches. The order is the paper's: targets, errors, Huber, behavior likelihood.
"""

from collections.abc import Callable
from typing import NamedTuple

import chex
import haiku as hk
import jax
import jax.numpy as jnp
import optax

from learner import losses
from learner.networks import Network
from learner.optimizers import Step
from learner.transitions import Transition, n_step_return


class LearnerState(NamedTuple):
    """Everything an update reads and writes."""

    params: hk.Params
    target_params: hk.Params
    opt_state: optax.OptState
    updates: jax.Array  # int32 []


class UpdateResult(NamedTuple):
    """What an update says of its batch."""

    td: jax.Array  # [B]: errors of the implied Q
    scalars: dict[str, jax.Array]  # means over the batch, for logs


Update = Callable[[LearnerState, Transition, jax.Array], tuple[LearnerState, UpdateResult]]


def init_state(
    network: Network, optimizer: optax.GradientTransformation, key: jax.Array
) -> LearnerState:
    """A fresh state; the target network starts as a copy of the online one."""
    params = network.init(key)
    return LearnerState(
        params=params,
        target_params=jax.tree.map(jnp.copy, params),
        opt_state=optimizer.init(params),
        updates=jnp.zeros((), jnp.int32),
    )


def make_update(
    network: Network,
    loss: losses.Loss,
    step: Step,
    *,
    target_period_updates: int,
    behavior_loss: losses.BehaviorLoss,
    online_mu: bool = False,
) -> Update:
    """Builds `update(state, batch, weights)`; `weights` [B] scale the value losses.

    With `online_mu` the bootstrap is centered by the online mu, not by the target network's.
    """
    backup_fn = jax.vmap(lambda *args: losses.backup_target(loss, *args))

    def targets(state: LearnerState, batch: Transition) -> jax.Array:
        online_t = network.apply(state.params, batch.o_t)
        policy_t = jax.vmap(loss.bootstrap_policy)(online_t)
        target_t = network.apply(state.target_params, batch.o_t)
        if online_mu:
            target_t = target_t._replace(logits=online_t.logits)
        return_t, discount_t = jax.vmap(n_step_return)(batch.r_t, batch.discount_t)
        return backup_fn(target_t, policy_t, return_t, discount_t)

    def loss_fn(
        params: hk.Params, batch: Transition, weights: jax.Array, backup: jax.Array
    ) -> tuple[jax.Array, UpdateResult]:
        online = network.apply(params, batch.o_tm1)
        errors = jax.vmap(loss.errors)(online, batch.a_tm1, backup)
        per_item = optax.huber_loss(errors.regressed).sum(axis=1)
        chex.assert_equal_shape([per_item, weights])
        value_loss = jnp.mean(weights * per_item)
        behavior = jnp.zeros(())
        if loss.behavior_head:
            behavior = jnp.mean(jax.vmap(behavior_loss)(online.logits, batch))
        scalars = {
            "loss": value_loss,
            "loss_behaviour": behavior,
            "td_abs": jnp.mean(jnp.abs(errors.td)),
            "value": jnp.mean(jax.vmap(loss.q_values)(online).max(axis=1)),
        }
        return value_loss + behavior, UpdateResult(td=errors.td, scalars=scalars)

    def update(
        state: LearnerState, batch: Transition, weights: jax.Array
    ) -> tuple[LearnerState, UpdateResult]:
        backup = targets(state, batch)
        gradients, result = jax.grad(loss_fn, has_aux=True)(state.params, batch, weights, backup)
        params, opt_state, grad_norm = step(gradients, state.opt_state, state.params)
        updates = state.updates + 1
        target_params = optax.periodic_update(
            params, state.target_params, updates, target_period_updates
        )
        result.scalars["grad_norm"] = grad_norm
        return LearnerState(params, target_params, opt_state, updates), result

    return update


def repeat_update(update: Update, repeats: int, *, unroll: bool) -> Update:
    """`repeats` updates in one call, on consecutive parts of one large batch.

    One dispatch then serves them all. Errors are those of all parts; the scalars are the last
    one's. `unroll` compiles the updates one after the other instead of as a loop.
    """

    def repeated(
        state: LearnerState, batch: Transition, weights: jax.Array
    ) -> tuple[LearnerState, UpdateResult]:
        parts = jax.tree.map(
            lambda column: column.reshape(repeats, -1, *column.shape[1:]), (batch, weights)
        )
        state, results = jax.lax.scan(
            lambda state, part: update(state, *part), state, parts, unroll=unroll
        )
        last = {name: column[-1] for name, column in results.scalars.items()}
        return state, UpdateResult(td=results.td.reshape(-1), scalars=last)

    return repeated
