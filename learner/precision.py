"""How exact the float32 products of an update are.

By default a device multiplies as it is quickest: a TPU rounds the factors of float32 products to
bfloat16, a GPU since Ampere to TensorFloat-32, a CPU not at all; all add in float32. Convolutions
are products too. The precision stands in the program that JAX hands to the compiler, and each
backend makes of it what it can.
"""

import jax

from learner.transitions import Transition
from learner.update import LearnerState, Update, UpdateResult


def with_precision(update: Update, precision: str) -> Update:
    """The same update with products of a precision by JAX's name; `default` leaves it to JAX."""
    if precision == "default":
        return update

    def precise(
        state: LearnerState, batch: Transition, weights: jax.Array
    ) -> tuple[LearnerState, UpdateResult]:
        with jax.default_matmul_precision(precision):
            return update(state, batch, weights)

    return precise
